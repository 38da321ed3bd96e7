scale "$data/snapshots/tiny.pickle.gz" --card 1GiB --reserve 2GiB
