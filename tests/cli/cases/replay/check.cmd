replay "$data/snapshots/tiny.pickle.gz" --check --json
