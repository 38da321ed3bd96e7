tune "$data/snapshots/tiny.pickle.gz" --tries 0
