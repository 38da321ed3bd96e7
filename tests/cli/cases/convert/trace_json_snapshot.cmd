convert $data/snapshots/tiny.pickle.gz $tmp/t.json && "$tarn" trace $tmp/t.json | tail -3
