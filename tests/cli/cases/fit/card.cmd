fit "$data/snapshots/cudagraph.pickle.gz" --card 1500MB --conf max_split_size_mb:64 | sed "s,^.*/cuda,cuda,"
