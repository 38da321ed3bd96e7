view -o $tmp/a --max-size 60000 $data/snapshots/gpt2_varlen.pickle.gz
