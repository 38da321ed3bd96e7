export $data/snapshots/tiny.pickle.gz
