check --strict $data/snapshots/tiny.pickle.gz
