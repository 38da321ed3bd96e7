summary --json $data/snapshots/tiny.pickle.gz
