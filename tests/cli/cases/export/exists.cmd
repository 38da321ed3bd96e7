export --to folded -o $tmp/x $data/snapshots/tiny.pickle.gz && "$tarn" export --to folded -o $tmp/x $data/snapshots/tiny.pickle.gz
