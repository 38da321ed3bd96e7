version >/dev/null; echo 'mine: training' >$tmp/rules; "$tarn" live --by category --rules $tmp/rules $data/snapshots/tiny.pickle.gz
