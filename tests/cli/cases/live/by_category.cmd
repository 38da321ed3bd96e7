live --at peak --by category $data/snapshots/gpt2_varlen.pickle.gz
