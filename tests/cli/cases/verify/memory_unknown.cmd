verify --memory gpu "$data/logs/same.jsonl"
