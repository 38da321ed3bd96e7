flame "$data/snapshots/cudagraph.before.pickle.gz" --folded -o -
