view -o $tmp/a --max-size 60000 $data/snapshots/multistream.pickle.gz
