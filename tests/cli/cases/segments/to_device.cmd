segments -o /dev/null $data/snapshots/tiny.pickle.gz
