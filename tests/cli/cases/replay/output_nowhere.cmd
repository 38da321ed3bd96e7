replay "$data/snapshots/tiny.pickle.gz" --save "$tmp/none/out.pickle"
