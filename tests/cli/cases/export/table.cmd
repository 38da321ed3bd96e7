export --to sqlite --table events $data/snapshots/tiny.pickle.gz
