scale "$data/snapshots/cudagraph.pickle.gz" --pools 3,0
