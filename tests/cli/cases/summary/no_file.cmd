version >/dev/null; "$tarn" nowhere/dump.pickle
