scale "$data/snapshots/tiny.pickle.gz" --match "(=2"
