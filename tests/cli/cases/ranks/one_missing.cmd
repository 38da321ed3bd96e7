ranks $data/snapshots/tiny.pickle.gz /nonexistent/r
