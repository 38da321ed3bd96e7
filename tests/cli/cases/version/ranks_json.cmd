version >/dev/null; cd $data/snapshots && "$tarn" ranks -n 1 --json --by stream tiny.pickle.gz tiny.pickle.gz oom.pickle.gz
