diff -n 1 --ignore-lines --strip-prefix /home/user --json $data/snapshots/tiny.pickle.gz $data/snapshots/cudagraph.pickle.gz
