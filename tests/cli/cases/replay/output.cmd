replay "$data/snapshots/cudagraph.pickle.gz" --conf expandable_segments:True --save "$tmp/out.pickle" >"$tmp/log" && "$tarn" check "$tmp/out.pickle" && "$tarn" stats "$tmp/out.pickle" | tail -n 12
