check $data/../../fuzz/corpus/pickle/cut
