replay "$data/snapshots/tiny.pickle.gz" -o "$tmp/x" && head -c 200 "$tmp/x" | grep -c "events of device 0"
