top "$data/snapshots/tiny.before.pickle.gz"
