scale "$data/snapshots/tiny.pickle.gz" --card 24G,H200
