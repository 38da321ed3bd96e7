top --step 1 $data/snapshots/tiny.pickle.gz
