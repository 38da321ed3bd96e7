tune --each "$data/snapshots/oom.pickle.gz"
