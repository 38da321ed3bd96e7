peak -n 2 --at step:2 $data/snapshots/gpt2_varlen.pickle.gz
