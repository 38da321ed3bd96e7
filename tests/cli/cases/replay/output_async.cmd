replay "$data/snapshots/tiny.pickle.gz" --conf backend:cudaMallocAsync --save "$tmp/out.pickle"
