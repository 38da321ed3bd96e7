top --sort size $data/snapshots/tiny.pickle.gz
