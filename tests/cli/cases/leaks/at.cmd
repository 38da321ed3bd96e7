leaks "$data/snapshots/tiny.pickle.gz" --at peak
