fit "$data/snapshots/tiny.pickle.gz" --of-device 0
