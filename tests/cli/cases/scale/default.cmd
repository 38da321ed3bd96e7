scale "$data/snapshots/tiny.pickle.gz" --factor batch=1,2 --card 1GiB --reserve 512MiB | sed "s,^.*/tiny,tiny,"
