replay "$data/snapshots/tiny.before.pickle.gz"
