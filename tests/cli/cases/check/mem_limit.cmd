check --mem-limit 2MiB $data/snapshots/gpt2_varlen.pickle.gz
