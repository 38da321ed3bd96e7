diff $data/snapshots/tiny.pickle.gz /nonexistent/b
