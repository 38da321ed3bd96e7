info "$data/profiles/profile.json.gz"
