segment_plot -o $tmp/a $data/snapshots/tiny.pickle.gz && "$tarn" view -o $tmp/b $data/snapshots/tiny.pickle.gz && cmp -s $tmp/a $tmp/b || head -c 15 $tmp/a
