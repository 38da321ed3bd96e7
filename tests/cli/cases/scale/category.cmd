scale "$data/snapshots/oom.pickle.gz" --factor activation=0.75,1.5 --conf expandable_segments:True | sed "s,^.*/oom,oom,"
