view -o $tmp/a --max-size 268000 $data/snapshots/gpt2_varlen.pickle.gz && [ $(wc -c <$tmp/a) -le 268000 ] && echo fits
