replay "$data/snapshots/tiny.pickle.gz" --measured "$data/snapshots/tiny.memory_stats.json"
