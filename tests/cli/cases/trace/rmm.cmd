trace "$data/logs/rmm.csv"
