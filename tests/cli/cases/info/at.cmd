info "$data/snapshots/tiny.pickle.gz" --at peak
