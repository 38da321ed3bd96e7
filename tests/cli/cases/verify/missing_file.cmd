verify "$tmp/none.jsonl"
