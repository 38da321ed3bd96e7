trace - < $data/snapshots/tiny.pickle.gz | head -3
