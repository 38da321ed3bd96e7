trace_plot -s -d 0 -o - $data/snapshots/oom.pickle.gz | tail -1
