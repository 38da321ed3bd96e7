version >/dev/null; echo 'race:leaf' >$tmp/s; cd $tmp && "$tarn" leaks --suppressions s $data/snapshots/tiny.pickle.gz
