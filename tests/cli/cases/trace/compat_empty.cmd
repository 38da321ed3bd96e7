trace --compat $data/snapshots/tiny.before.pickle.gz
