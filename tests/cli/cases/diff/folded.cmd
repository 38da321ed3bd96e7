diff --folded --ignore-lines --frames python --depth 1 $data/snapshots/tiny.pickle.gz $data/snapshots/multistream.pickle.gz
