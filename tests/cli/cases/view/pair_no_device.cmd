view -d 3 -o $tmp/a $data/snapshots/tiny.pickle.gz $data/snapshots/oom.pickle.gz
