tune "$data/snapshots/tiny.pickle.gz" --limit 1GiB
