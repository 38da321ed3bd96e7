fit "$data/snapshots/tiny.pickle.gz" --card 80GB --json
