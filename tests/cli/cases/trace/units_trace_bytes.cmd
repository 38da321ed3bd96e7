trace --units bytes $data/snapshots/tiny.pickle.gz | tail -n 3
