trace --device 4 $data/snapshots/tiny.pickle.gz
