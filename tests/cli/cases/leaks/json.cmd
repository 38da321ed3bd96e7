leaks -n 1 --steps 4 --json $data/snapshots/tiny.pickle.gz
