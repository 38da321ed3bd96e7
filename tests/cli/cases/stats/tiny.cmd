stats "$data/snapshots/tiny.pickle.gz"
