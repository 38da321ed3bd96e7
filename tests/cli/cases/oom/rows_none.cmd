oom --csv $data/snapshots/tiny.pickle.gz
