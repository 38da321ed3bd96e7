verify "$data/measured.json"
