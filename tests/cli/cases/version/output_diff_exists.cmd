version >/dev/null; echo old >$tmp/d; "$tarn" diff -o $tmp/d $data/snapshots/tiny.pickle.gz $data/snapshots/tiny.pickle.gz
