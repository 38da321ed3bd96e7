compare --folded $data/snapshots/llama_generate.before.pickle.gz $data/snapshots/llama_generate.pickle.gz
