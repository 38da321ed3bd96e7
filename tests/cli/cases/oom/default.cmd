oom -n 5 $data/snapshots/oom.pickle.gz
