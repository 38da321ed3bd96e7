version >/dev/null; cd $tmp && "$tarn" segments $data/snapshots/tiny.pickle.gz && ls && grep -c "<g class" output.svg
