scale "$data/snapshots/tiny.pickle.gz" --factor weights=2
