leaks --jsonl -n 2 $data/snapshots/tiny.pickle.gz
