top "$data/snapshots/tiny.before.pickle.gz" -d 1
