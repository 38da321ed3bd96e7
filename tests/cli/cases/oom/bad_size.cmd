oom --device-total much $data/snapshots/oom.pickle.gz
