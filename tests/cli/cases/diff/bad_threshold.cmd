diff --fail-above much $data/snapshots/tiny.pickle.gz $data/snapshots/tiny.pickle.gz
