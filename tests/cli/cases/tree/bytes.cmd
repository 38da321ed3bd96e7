tree --units bytes --depth 1 $data/snapshots/tiny.pickle.gz
