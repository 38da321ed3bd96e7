compare $data/snapshots/tiny.pickle.gz $tmp/none
