tune "$data/decisions/limit_default.jsonl.gz" -n 2 --tries 20
