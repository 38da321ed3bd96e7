top --step last $data/snapshots/tiny.pickle.gz
