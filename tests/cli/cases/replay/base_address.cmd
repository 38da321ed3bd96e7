replay "$data/snapshots/tiny.pickle.gz" --base-address 4096
