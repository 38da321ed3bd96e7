stats --units bytes $data/snapshots/tiny.pickle.gz
