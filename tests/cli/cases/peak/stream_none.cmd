peak --stream 7 $data/snapshots/multistream.pickle.gz
