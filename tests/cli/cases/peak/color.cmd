peak -n 2 --color always "$data/snapshots/tiny.pickle.gz"
