trace $data/../../fuzz/corpus/pickle/cut
