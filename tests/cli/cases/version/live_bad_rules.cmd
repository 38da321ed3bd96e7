version >/dev/null; printf 'mine: training\nno rule\n' >$tmp/rules; cd $tmp && "$tarn" live --by category --rules rules $data/snapshots/tiny.pickle.gz
