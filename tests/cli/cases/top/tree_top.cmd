top --tree --sort requested -n 2 $data/snapshots/multistream.pickle.gz
