version >/dev/null; echo 'leak:^leaf$' >$tmp/s; "$tarn" leaks --fail --steps 4 --suppressions $tmp/s $data/snapshots/tiny.pickle.gz
