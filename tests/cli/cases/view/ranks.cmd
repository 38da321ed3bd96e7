view --ranks -o - $data/snapshots/tiny.pickle.gz $data/snapshots/oom.pickle.gz $data/snapshots/multistream.pickle.gz | grep -o 'data-name="[a-z]*"\|<title>.*</title>'
