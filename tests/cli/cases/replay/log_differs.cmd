replay "$data/logs/changed.jsonl"
