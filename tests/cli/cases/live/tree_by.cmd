live --tree --by file $data/snapshots/tiny.pickle.gz
