live "$data/snapshots/cudagraph.before.pickle.gz" --stream 0 --by pool --json | grep "events\|bytes\|\"event\""
