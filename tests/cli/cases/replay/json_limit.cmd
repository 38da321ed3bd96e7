replay "$data/snapshots/oom.pickle.gz" --json | grep -A99 first_oom | grep -v wall_ns
