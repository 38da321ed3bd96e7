summary --json --md $data/snapshots/tiny.pickle.gz
