replay "$data/snapshots/tiny.pickle.gz" --conf backend:cudaMallocAsync -o "$tmp/out.pickle"
