oom $data/../../fuzz/corpus/pickle/unsafe2
