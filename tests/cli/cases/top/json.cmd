top -n 1 --sort count --json $data/snapshots/tiny.pickle.gz
