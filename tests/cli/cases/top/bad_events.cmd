top --events 9..1 $data/snapshots/tiny.pickle.gz
