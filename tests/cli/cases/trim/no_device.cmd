trim -d 7 $data/snapshots/tiny.pickle.gz $tmp/x
