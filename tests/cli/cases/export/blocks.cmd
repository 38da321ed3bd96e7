export --to csv --table blocks $data/snapshots/tiny.pickle.gz
