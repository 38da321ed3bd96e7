flame --folded --where "function == leaf" $data/snapshots/tiny.pickle.gz | head -n 3
