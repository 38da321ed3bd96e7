top -n 3 --match attention --step 2..3 $data/snapshots/gpt2_varlen.pickle.gz
