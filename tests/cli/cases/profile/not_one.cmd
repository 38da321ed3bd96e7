profile $data/snapshots/tiny.pickle.gz $tmp/x
