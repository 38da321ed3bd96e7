replay "$data/snapshots/tiny.pickle.gz" --measured "$tmp/none.json"
