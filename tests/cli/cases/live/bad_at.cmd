live --at noon $data/snapshots/tiny.pickle.gz
