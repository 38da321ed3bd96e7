live --by category --rules /nonexistent/rules $data/snapshots/tiny.pickle.gz
