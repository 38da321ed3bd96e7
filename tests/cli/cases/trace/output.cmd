trace -d0 -o $tmp/t $data/snapshots/tiny.pickle.gz && tail -1 $tmp/t
