live -n 1 --at event:4 --json $data/snapshots/tiny.pickle.gz
