segments --folded $data/snapshots/tiny.pickle.gz
