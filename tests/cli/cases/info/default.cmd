info $data/snapshots/oom.pickle.gz
