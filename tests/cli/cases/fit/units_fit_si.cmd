fit --units si --card 24GB $data/snapshots/tiny.pickle.gz | tail -n +3
