tree --once --by category --min-share 5 $data/snapshots/gpt2_varlen.pickle.gz
