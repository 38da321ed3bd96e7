top --min-size 1GiB --max-size 2GiB $data/snapshots/oom.pickle.gz
