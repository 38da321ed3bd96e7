flame --from never $data/snapshots/tiny.pickle.gz
