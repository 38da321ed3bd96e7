steps $data/snapshots/gpt2_varlen.pickle.gz
