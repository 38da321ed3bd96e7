replay "$data/snapshots/multistream.pickle.gz" --conf '' --conf policy:compact | sed "s,^.*/multi,multi,; s, *[0-9.]* ms$, TIME,"
