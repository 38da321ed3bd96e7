live $data/../../fuzz/corpus/pickle/unsafe2
