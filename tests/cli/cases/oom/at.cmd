oom -n 1 --at oom:2 $data/snapshots/oom.pickle.gz
