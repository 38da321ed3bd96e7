view -o $tmp/a --max-size 230000 $data/snapshots/gpt2_varlen.pickle.gz && [ $(wc -c <$tmp/a) -le 230000 ] && echo fits
