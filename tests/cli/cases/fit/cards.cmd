fit "$data/snapshots/oom.pickle.gz" --card "4G, 8gb" --card "RTX 4090" | sed "s,^.*/oom,oom,"
