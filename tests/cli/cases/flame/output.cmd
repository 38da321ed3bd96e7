flame --shape flame -o $tmp/f.svg $data/snapshots/tiny.pickle.gz && tail -n 1 $tmp/f.svg
