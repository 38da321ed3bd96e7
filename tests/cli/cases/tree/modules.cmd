tree --by module $data/snapshots/tiny.pickle.gz
