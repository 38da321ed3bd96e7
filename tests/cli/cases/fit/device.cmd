fit "$data/snapshots/cudagraph.pickle.gz" --device 1500MB --conf max_split_size_mb:64 | sed "s,^.*/cuda,cuda,"
