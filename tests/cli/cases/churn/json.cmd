churn -n 1 --max-lifetime 10 --json $data/snapshots/tiny.pickle.gz
