version >/dev/null; cd $data/snapshots; "$tarn" summary llama_generate.pickle.gz
