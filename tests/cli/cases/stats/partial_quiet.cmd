stats -q $data/../../fuzz/corpus/pickle/cut
