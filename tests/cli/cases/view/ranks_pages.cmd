view --ranks --pages /nonexistent -o $tmp/a.html $data/snapshots/tiny.pickle.gz
