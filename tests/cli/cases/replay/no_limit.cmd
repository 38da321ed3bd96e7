replay "$data/snapshots/oom.pickle.gz" --no-limit | sed "s/ *[0-9.]* ms$//;s,^.*/oom,oom,"
