peak --by module "$data/snapshots/tiny.pickle.gz"
