version >/dev/null; cd $data/snapshots; "$tarn" summary llama_generate.before.pickle.gz
