tree --match NEVER $data/snapshots/tiny.pickle.gz
