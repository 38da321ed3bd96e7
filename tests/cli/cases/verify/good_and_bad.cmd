verify "$data/logs/same.jsonl" "$data/logs/changed.jsonl"
