peak -n 3 $data/snapshots/gpt2_varlen.pickle.gz
