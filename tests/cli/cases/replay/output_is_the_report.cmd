replay "$data/snapshots/tiny.pickle.gz" -o "$tmp/x.pickle" 2>&1 | sed "s,/tmp[^ ]*/,,"
