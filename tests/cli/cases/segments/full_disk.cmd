segments --folded -o /dev/full $data/snapshots/tiny.pickle.gz
