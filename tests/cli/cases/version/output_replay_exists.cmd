version >/dev/null; echo old >$tmp/r; "$tarn" replay --save $tmp/r $data/snapshots/tiny.pickle.gz
