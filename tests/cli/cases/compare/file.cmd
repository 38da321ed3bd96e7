compare -o $tmp/c.svg $data/snapshots/llama_generate.before.pickle.gz $data/snapshots/llama_generate.pickle.gz && grep -c "<g class" $tmp/c.svg
