top -n 3 $data/snapshots/multistream.pickle.gz
