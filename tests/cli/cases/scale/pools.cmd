scale "$data/snapshots/cudagraph.pickle.gz" --factor batch=1 --pools 3,30 --card 4GiB | sed "s,^.*/cuda,cuda,"
