replay "$data/snapshots/oom.pickle.gz" --memory-limit 6GiB | sed "s/ *[0-9.]* ms$//;s,^.*/oom,oom,"
