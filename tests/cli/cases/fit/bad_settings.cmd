fit "$data/snapshots/tiny.pickle.gz" --conf nonsense:1
