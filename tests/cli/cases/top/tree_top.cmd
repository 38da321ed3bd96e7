top --tree --sort allocated -n 2 $data/snapshots/multistream.pickle.gz
