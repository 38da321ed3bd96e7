trace --compat $data/snapshots/tiny.pickle.gz
