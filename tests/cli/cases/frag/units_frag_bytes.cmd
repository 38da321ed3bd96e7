frag -n 3 --units=bytes $data/snapshots/gpt2_varlen.pickle.gz
