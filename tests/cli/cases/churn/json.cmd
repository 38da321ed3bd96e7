churn -n 1 --max-life 10 --json $data/snapshots/tiny.pickle.gz
