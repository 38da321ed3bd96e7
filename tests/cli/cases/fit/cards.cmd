fit "$data/snapshots/multistream.pickle.gz" --card "1G, 1gb" --card "RTX 4090" | sed "s,^.*/multi,multi,"
