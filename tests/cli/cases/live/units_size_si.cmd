live --by size --units si $data/snapshots/gpt2_varlen.pickle.gz
