info --time 0.5.. --min-size 1MiB $data/snapshots/multistream.pickle.gz
