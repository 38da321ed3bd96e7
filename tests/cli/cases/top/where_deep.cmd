top --where "((((((((((((((((((((((((((((((((((freed" $data/snapshots/tiny.pickle.gz
