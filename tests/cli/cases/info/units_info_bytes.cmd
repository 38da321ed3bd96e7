info --units bytes $data/snapshots/tiny.pickle.gz
