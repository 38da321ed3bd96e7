replay "$data/snapshots/tiny.pickle.gz" --measured "$data/measured.json" --workload nonsense
