replay "$data/snapshots/tiny.pickle.gz" --measured "$data/measured.json" --conf max_split_size_mb:77
