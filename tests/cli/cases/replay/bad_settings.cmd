replay "$data/snapshots/tiny.pickle.gz" --conf max_split_size_mb:2
