tune "$data/snapshots/cudagraph.pickle.gz" -n 3
