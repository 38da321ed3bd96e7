trace $data/snapshots/cudagraph.pickle.gz | tail -2
