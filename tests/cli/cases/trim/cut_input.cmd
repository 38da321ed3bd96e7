trim $data/../../fuzz/corpus/pickle/cut $tmp/x && "$tarn" check $tmp/x
