profile -q $data/profiles/recorded.json.gz $tmp/x.pickle && "$tarn" check $tmp/x.pickle && "$tarn" peak -d 0 -n 3 $tmp/x.pickle
