peak -n 1 --json -o $tmp/p $data/snapshots/tiny.pickle.gz && cat $tmp/p
