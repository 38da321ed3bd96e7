trace --device 99999999999 $data/snapshots/tiny.pickle.gz
