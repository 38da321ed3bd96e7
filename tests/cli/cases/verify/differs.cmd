verify - <"$data/logs/changed.jsonl"
