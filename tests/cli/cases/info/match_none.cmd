info --match ADAM $data/snapshots/oom.pickle.gz
