replay "$data/snapshots/llama_generate.pickle.gz" --measured "$data/measured.json"
