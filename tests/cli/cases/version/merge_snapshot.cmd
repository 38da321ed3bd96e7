version >/dev/null; cd $data/snapshots && "$tarn" merge tiny.pickle.gz
