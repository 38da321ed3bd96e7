peak $data/snapshots/oom.before.pickle.gz
