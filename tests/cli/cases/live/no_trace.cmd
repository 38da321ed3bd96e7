live "$data/snapshots/tiny.before.pickle.gz"
