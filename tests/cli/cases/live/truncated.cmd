live $data/../../fuzz/corpus/pickle/cut
