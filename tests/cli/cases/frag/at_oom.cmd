frag --at oom $data/snapshots/oom.pickle.gz
