export --to csv --table events $data/snapshots
