check -o $tmp/none/c $data/snapshots/tiny.pickle.gz
