leaks -n 3 $data/snapshots/llama_generate.pickle.gz
