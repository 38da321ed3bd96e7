diff --csv --folded $data/snapshots/oom.pickle.gz $data/snapshots/multistream.pickle.gz
