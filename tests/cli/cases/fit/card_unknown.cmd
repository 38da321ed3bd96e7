fit "$data/snapshots/tiny.pickle.gz" --card H300
