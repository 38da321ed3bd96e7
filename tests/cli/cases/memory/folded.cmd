memory --folded $data/snapshots/tiny.pickle.gz
