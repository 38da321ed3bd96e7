oom --by category $data/snapshots/oom.pickle.gz
