diff -n 2 --at start --to end $data/snapshots/llama_generate.pickle.gz $data/snapshots/llama_generate.pickle.gz
