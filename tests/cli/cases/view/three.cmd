view -o $tmp/a.html $data/snapshots/tiny.pickle.gz $data/snapshots/tiny.pickle.gz $data/snapshots/tiny.pickle.gz
