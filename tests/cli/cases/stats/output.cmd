stats -o $tmp/s $data/snapshots/tiny.pickle.gz && head -2 $tmp/s
