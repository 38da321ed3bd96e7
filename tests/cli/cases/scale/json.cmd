scale "$data/snapshots/tiny.pickle.gz" --match "conv|linear=2" --factor all=1.5 --json
