flame --folded --match ADAM $data/snapshots/oom.pickle.gz
