tree --where "size >= 1MiB && stream == 0" --by category --at oom $data/snapshots/oom.pickle.gz --depth 1
