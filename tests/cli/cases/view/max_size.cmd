view -o $tmp/a --max-size 260000 $data/snapshots/gpt2_varlen.pickle.gz && [ $(wc -c <$tmp/a) -le 260000 ] && echo fits
