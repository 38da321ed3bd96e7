view --ranks --redact all -o $tmp/a.html $data/snapshots/tiny.pickle.gz
