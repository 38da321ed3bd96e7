top --csv --json $data/snapshots/tiny.pickle.gz
