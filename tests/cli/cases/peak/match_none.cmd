peak --match ADAM $data/snapshots/oom.pickle.gz
