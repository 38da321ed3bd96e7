stats "$data/measured.json"
