tree --at start $data/snapshots/tiny.pickle.gz
