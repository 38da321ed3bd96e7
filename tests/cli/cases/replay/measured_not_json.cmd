replay "$data/snapshots/tiny.pickle.gz" --measured "$data/logs/cut.jsonl"
