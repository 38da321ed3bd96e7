version >/dev/null; cd $data/snapshots && "$tarn" ranks -n 3 gpt2_varlen.pickle.gz gpt2_varlen_expandable.pickle.gz oom.pickle.gz
