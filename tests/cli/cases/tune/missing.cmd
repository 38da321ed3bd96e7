tune "$data/snapshots/tiny.pickle.gz" "$tmp/none.pickle"
