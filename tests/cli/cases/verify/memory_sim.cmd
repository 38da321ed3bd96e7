verify --memory sim "$data/logs/same.jsonl"
