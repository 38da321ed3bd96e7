version >/dev/null; echo old >$tmp/r; "$tarn" replay -o $tmp/r $data/snapshots/tiny.pickle.gz
