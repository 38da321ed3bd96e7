fit "$data/snapshots/tiny.pickle.gz" --device 3
