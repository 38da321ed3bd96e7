peak -n 2 $data/snapshots/llama_generate.pickle.gz
