leaks -n 3 --units bytes $data/snapshots/llama_generate.pickle.gz
