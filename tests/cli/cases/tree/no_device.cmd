tree --device 3 $data/snapshots/tiny.pickle.gz
