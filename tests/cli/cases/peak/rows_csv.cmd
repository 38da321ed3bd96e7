peak --csv -n 2 $data/snapshots/multistream.pickle.gz
