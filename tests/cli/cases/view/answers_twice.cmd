view -o $tmp/a --answers --no-answers $data/snapshots/tiny.pickle.gz
