profile -q $data/profiles/profile.json.gz - | "$tarn" trace -
