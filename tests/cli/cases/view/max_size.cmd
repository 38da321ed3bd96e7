view -o $tmp/a --max-size 272000 $data/snapshots/gpt2_varlen.pickle.gz && [ $(wc -c <$tmp/a) -le 272000 ] && echo fits
