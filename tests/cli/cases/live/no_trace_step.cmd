live "$data/snapshots/tiny.before.pickle.gz" --step 1
