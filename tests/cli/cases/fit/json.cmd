fit "$data/snapshots/tiny.pickle.gz" --device 80GB --json | sed "/\"tool\"/d"
