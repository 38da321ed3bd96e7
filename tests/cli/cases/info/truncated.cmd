info $data/../../fuzz/corpus/pickle/cut
