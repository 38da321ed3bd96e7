live $data/snapshots/oom.before.pickle.gz
