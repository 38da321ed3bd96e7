top --csv -o $tmp/x $data/snapshots/tiny.pickle.gz && cat $tmp/x
