leaks --fail -n 1 --steps 4 $data/snapshots/tiny.pickle.gz
