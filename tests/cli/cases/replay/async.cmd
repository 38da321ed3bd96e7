replay $data/snapshots/gpt2_varlen.pickle.gz --conf backend:cudaMallocAsync --json | sed '/wall_ns/d'
