live -n 2 --at oom $data/snapshots/oom.pickle.gz
