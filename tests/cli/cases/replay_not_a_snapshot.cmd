replay "$data/measured.json"
