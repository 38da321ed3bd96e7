trim --events 0..9 $data/snapshots/tiny.pickle.gz - | "$tarn" trace -
