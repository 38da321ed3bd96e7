verify - <"$data/logs/cut.jsonl"
