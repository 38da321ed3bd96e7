top --where "size >= 64MiB && agee > 2s" $data/snapshots/tiny.pickle.gz
