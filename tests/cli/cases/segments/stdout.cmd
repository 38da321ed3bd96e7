segments -o - $data/snapshots/tiny.pickle.gz | grep -c "<title>"
