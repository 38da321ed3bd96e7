stats -o $tmp/none/s $data/snapshots/tiny.pickle.gz
