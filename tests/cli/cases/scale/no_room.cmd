scale "$data/snapshots/tiny.pickle.gz" --device 1GiB --reserve 2GiB
