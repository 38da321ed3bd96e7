tree --at oom $data/snapshots/tiny.pickle.gz
