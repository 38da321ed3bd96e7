trim --time 2..1 $data/snapshots/tiny.pickle.gz $tmp/x
