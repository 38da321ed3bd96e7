diff --fail-above 2% -n 1 $data/snapshots/tiny.pickle.gz $data/snapshots/multistream.pickle.gz
