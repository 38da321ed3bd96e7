live --at peak -n 3 --where 'size >= 64MiB && (frame ~ "attention" || lifetime > 1000)' $data/snapshots/gpt2_varlen.pickle.gz
