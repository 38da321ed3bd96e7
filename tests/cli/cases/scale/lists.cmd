scale "$data/snapshots/tiny.pickle.gz" --factor batch=1,2 --factor all=1,2,3
