peak -n 2 --stream 942398528 $data/snapshots/multistream.pickle.gz
