info --strict $data/../../fuzz/corpus/pickle/many_keys
