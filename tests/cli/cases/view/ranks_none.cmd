view --ranks -o $tmp/a.html /nonexistent/r; code=$?; ls $tmp; (exit $code)
