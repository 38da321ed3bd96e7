oom --at peak $data/snapshots/oom.pickle.gz
