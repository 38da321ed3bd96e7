view --ranks --labels /nonexistent -o $tmp/a.html $data/snapshots/tiny.pickle.gz
