check $data/../../fuzz/corpus/pickle/unsafe
