version >/dev/null; cd $tmp && "$tarn" view $data/snapshots/tiny.pickle.gz && ls
