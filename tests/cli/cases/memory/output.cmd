memory -o $tmp/m.svg $data/snapshots/tiny.pickle.gz && cd $tmp && ls && head -3 m.svg
