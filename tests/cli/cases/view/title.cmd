view -o - --title "a <b>" $data/snapshots/tiny.pickle.gz | grep -o "<title>.*</title>"
