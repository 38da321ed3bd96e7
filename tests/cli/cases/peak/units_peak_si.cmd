peak -n 3 --units si $data/snapshots/gpt2_varlen.pickle.gz
