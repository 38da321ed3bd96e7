trim --drop-freed $data/snapshots/tiny.pickle.gz - | "$tarn" trace -
