tune --units bytes -n 4 $data/snapshots/tiny.pickle.gz
