version >/dev/null; cd $data/snapshots && for s in gpt2_varlen; do "$tarn" ranks --jsonl --since-step 2 $s.pickle.gz | grep -E '"growth"'; done; true
