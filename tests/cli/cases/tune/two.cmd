tune "$data/snapshots/oom.pickle.gz" "$data/snapshots/tiny.pickle.gz" -n 2 --goal device-calls --tries 40 --threads 3
