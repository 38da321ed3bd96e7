steps --csv --parts 3 $data/snapshots/tiny.pickle.gz
