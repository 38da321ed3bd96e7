fit --units si --device 24GB $data/snapshots/tiny.pickle.gz | tail -n +3
