top --by category $data/snapshots/multistream.pickle.gz
