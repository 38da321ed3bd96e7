view -o $tmp/a $data/snapshots/tiny.pickle.gz $data/snapshots/oom.pickle.gz && grep -o "<title>.*</title>" $tmp/a && grep -c "data-name=.after.head" $tmp/a
