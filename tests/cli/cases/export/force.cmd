export --to folded -o $tmp/x $data/snapshots/tiny.pickle.gz && "$tarn" export -f --to folded -o $tmp/x $data/snapshots/tiny.pickle.gz && cat $tmp/x
