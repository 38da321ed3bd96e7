diff --folded --json $data/snapshots/tiny.pickle.gz $data/snapshots/tiny.pickle.gz
