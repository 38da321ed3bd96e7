fit "$data/snapshots/tiny.pickle.gz" --device 80MiB --reserve 40MiB
