flame --folded $data/snapshots/multistream.pickle.gz
