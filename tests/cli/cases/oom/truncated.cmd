oom $data/../../fuzz/corpus/pickle/cut
