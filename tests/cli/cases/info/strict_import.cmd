info --strict $data/../../fuzz/corpus/pickle/ordered_dict
