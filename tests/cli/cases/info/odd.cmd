info $data/../../fuzz/corpus/pickle/many_keys
