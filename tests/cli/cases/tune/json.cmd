tune "$data/snapshots/tiny.pickle.gz" -n 1 --goal capacity --tries 20 --json
