tree $data/snapshots/cudagraph.pickle.gz
