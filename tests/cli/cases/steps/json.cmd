steps -n 2 --json $data/snapshots/oom.pickle.gz
