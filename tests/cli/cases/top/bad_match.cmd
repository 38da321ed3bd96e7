top --match '(' $data/snapshots/tiny.pickle.gz
