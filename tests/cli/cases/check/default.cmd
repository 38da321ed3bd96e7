check $data/snapshots/oom.pickle.gz
