replay "$data/snapshots/tiny.pickle.gz"
