diff $data/snapshots/tiny.pickle.gz $data/snapshots/tiny.before.pickle.gz
