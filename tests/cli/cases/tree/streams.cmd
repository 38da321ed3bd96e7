tree --once --by stream --depth 2 $data/snapshots/cudagraph.pickle.gz
