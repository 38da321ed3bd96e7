trace $data/../../fuzz/corpus/pickle/unsafe
