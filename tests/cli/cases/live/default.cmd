live -n 3 --at peak $data/snapshots/multistream.pickle.gz
