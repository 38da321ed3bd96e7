flame --shape round $data/snapshots/tiny.pickle.gz
