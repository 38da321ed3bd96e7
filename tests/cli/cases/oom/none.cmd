oom $data/snapshots/tiny.pickle.gz
