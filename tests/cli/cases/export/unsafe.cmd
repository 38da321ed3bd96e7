export --to sqlite -o $tmp/x $data/../../fuzz/corpus/pickle/unsafe
