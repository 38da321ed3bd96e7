view --ranks -o $tmp/a.html $data/snapshots/tiny.pickle.gz /nonexistent/r; code=$?; ls $tmp; (exit $code)
