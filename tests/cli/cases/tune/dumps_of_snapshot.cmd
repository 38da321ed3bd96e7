tune --dumps x "$data/snapshots/tiny.pickle.gz"
