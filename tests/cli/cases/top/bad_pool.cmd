top --pool mine $data/snapshots/tiny.pickle.gz
