config -o $tmp/c && cat $tmp/c | head -n 2; "$tarn" config -o $tmp/c
