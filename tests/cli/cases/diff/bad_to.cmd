diff --to never $data/snapshots/tiny.pickle.gz $data/snapshots/tiny.pickle.gz
