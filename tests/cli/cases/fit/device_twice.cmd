fit "$data/snapshots/tiny.pickle.gz" --device 0 --device 1
