replay "$data/snapshots/oom.pickle.gz" --conf "" --conf expandable_segments:True | sed "s/ *[0-9.]* ms$//;s,^.*/oom,oom,"
