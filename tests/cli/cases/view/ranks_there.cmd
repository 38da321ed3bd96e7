view --ranks -o $data/sizes.txt $data/snapshots/tiny.pickle.gz 2>&1 | sed "s#$data#DATA#"
