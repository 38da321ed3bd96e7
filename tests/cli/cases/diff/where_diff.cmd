diff -n 3 --where "size > 100MiB" $data/snapshots/gpt2_varlen.pickle.gz $data/snapshots/oom.pickle.gz
