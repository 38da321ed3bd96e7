peak --tree --min-share 5 -n 3 $data/snapshots/gpt2_varlen.pickle.gz
