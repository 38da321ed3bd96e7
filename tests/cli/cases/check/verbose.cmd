check -v $data/../../fuzz/corpus/pickle/many_keys
