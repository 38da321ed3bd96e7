info --json $data/snapshots/tiny.pickle.gz
