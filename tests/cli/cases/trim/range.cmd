trim --events 5-7 $data/snapshots/tiny.pickle.gz $tmp/x
