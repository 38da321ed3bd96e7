summarize --label host $data/snapshots/tiny.pickle.gz
