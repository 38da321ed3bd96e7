trim --anonymize $data/snapshots/tiny.pickle.gz $tmp/x.json && "$tarn" top $tmp/x.json
