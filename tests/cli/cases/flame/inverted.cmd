flame --folded --inverted --by category --depth 2 $data/snapshots/tiny.pickle.gz
