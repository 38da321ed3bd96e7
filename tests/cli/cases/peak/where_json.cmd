peak --json -n 1 --where "freed && file == adam.py" $data/snapshots/gpt2_varlen.pickle.gz | head -n 23
