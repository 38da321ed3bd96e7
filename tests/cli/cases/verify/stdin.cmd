verify - <"$data/logs/same.jsonl"
