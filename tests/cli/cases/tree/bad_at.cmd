tree --at never $data/snapshots/tiny.pickle.gz
