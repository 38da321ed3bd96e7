stats "$data/snapshots/cudagraph.pickle.gz"
