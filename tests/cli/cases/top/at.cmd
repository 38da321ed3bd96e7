top -n 1 --at end --by line $data/snapshots/multistream.pickle.gz
