stats --partial $data/../../fuzz/corpus/pickle/cut
