view --pages . -o $tmp/a.html $data/snapshots/tiny.pickle.gz
