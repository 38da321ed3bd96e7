top --time soon $data/snapshots/tiny.pickle.gz
