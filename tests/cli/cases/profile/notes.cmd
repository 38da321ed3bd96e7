profile $data/profiles/profile.json.gz $tmp/x.pickle && "$tarn" check $tmp/x.pickle
