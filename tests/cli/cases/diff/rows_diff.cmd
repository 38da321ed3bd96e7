diff --csv -n 2 $data/snapshots/oom.pickle.gz $data/snapshots/multistream.pickle.gz
