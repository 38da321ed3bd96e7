scale "$data/snapshots/cudagraph.pickle.gz" --factor batch=1 --pools 30 --json
