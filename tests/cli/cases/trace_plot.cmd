trace_plot -o - $data/snapshots/oom.pickle.gz | tail -4
