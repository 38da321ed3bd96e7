frag -n 3 $data/snapshots/cudagraph.pickle.gz
