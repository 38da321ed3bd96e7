trace_plot -o $tmp/a $data/snapshots/oom.pickle.gz && "$tarn" view -o $tmp/b $data/snapshots/oom.pickle.gz && cmp $tmp/a $tmp/b && head -c 15 $tmp/a
