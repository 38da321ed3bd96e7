oom -n 1 --json $data/snapshots/oom.pickle.gz
