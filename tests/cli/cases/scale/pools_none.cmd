scale "$data/snapshots/tiny.pickle.gz" --pools 3
