version >/dev/null; cd $data/snapshots && "$tarn" ranks tiny.pickle.gz tiny.before.pickle.gz
