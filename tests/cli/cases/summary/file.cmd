version >/dev/null; cd $data/snapshots; "$tarn" oom.pickle.gz
