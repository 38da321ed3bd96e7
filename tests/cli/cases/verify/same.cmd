verify "$data/logs/same.jsonl" | sed "s,^.*/,,"
