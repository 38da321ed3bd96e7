frag "$data/snapshots/tiny.before.pickle.gz"
