replay "$data/snapshots/tiny.pickle.gz" -o "$tmp/none/out.pickle"
