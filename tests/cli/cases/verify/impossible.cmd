verify - <"$data/logs/impossible.jsonl"
