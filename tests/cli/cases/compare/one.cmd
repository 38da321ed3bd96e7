compare $data/snapshots/tiny.pickle.gz
