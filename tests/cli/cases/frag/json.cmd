frag -n 1 --json $data/snapshots/tiny.pickle.gz
