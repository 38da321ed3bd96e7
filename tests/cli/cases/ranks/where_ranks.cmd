ranks -n 3 --where "lifetime > 1s" $data/snapshots/tiny.pickle.gz | sed "s#$data#DATA#"
