tree -o $tmp/t $data/snapshots/tiny.pickle.gz && cat $tmp/t
