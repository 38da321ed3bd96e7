version >/dev/null; cd $data/snapshots && "$tarn" ranks --jsonl --since-step 2 cudagraph.pickle.gz | grep -E '"growth"'
