trace $data/snapshots/gpt2_varlen.pickle.gz | head -n 1
