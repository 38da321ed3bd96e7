live -n 2 $data/snapshots/gpt2_varlen.pickle.gz
