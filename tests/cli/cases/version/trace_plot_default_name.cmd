version >/dev/null; cd $tmp && "$tarn" trace-plot $data/snapshots/tiny.pickle.gz && ls
