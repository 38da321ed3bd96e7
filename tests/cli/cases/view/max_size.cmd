view -o $tmp/a --max-size 228000 $data/snapshots/multistream.pickle.gz && [ $(wc -c <$tmp/a) -le 228000 ] && echo fits
