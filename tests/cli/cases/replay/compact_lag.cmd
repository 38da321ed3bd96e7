replay "$data/snapshots/multistream.pickle.gz" --conf policy:compact --lag 23 --check | tail -n 3
