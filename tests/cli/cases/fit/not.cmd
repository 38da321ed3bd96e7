fit "$data/snapshots/tiny.pickle.gz" --card 80MiB --reserve 40MiB
