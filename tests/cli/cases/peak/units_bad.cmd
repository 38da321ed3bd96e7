peak --units KiB $data/snapshots/tiny.pickle.gz
