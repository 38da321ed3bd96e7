info "$data/snapshots/tiny.pickle.gz" --by stream
