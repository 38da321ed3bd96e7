version >/dev/null; cd $data/snapshots && printf 'file,rack\ntiny\n' >$tmp/l.csv; cd $tmp; "$tarn" ranks --labels l.csv $data/snapshots/tiny.pickle.gz
