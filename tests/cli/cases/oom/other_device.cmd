oom -d 1 $data/snapshots/oom.pickle.gz
