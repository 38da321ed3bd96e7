view -o $tmp/a --max-size 277000 $data/snapshots/gpt2_varlen.pickle.gz && [ $(wc -c <$tmp/a) -le 277000 ] && echo fits
