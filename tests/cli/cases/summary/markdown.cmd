version >/dev/null; cd $data/snapshots; "$tarn" multistream.pickle.gz --md
