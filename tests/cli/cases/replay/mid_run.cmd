replay "$data/snapshots/llama_generate.pickle.gz"
