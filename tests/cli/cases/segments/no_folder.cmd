segments -o $tmp/none/x.svg $data/snapshots/tiny.pickle.gz
