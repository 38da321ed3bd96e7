ranks -n 3 --where "life > 1s" $data/snapshots/tiny.pickle.gz | sed "s#$data#DATA#"
