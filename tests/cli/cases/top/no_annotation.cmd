top --annotation forward $data/snapshots/multistream.pickle.gz
