live --tree --json -n 1 --at peak $data/snapshots/tiny.pickle.gz
