peak -n 1 --match linear $data/snapshots/oom.pickle.gz
