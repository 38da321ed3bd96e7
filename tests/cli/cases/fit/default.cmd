fit "$data/snapshots/cudagraph.pickle.gz" | sed "s,^.*/cuda,cuda,"
