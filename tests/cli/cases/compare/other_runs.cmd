compare -o $tmp/c.svg $data/snapshots/tiny.pickle.gz $data/snapshots/cudagraph.before.pickle.gz
