view --empty -o $tmp/a $data/snapshots/tiny.pickle.gz
