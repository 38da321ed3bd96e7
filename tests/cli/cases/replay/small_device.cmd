replay "$data/snapshots/tiny.pickle.gz" --device-total 40MiB
