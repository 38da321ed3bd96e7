live --at peak -n 3 --where 'size >= 64MiB && (frame ~ "attention" || life > 1000)' $data/snapshots/gpt2_varlen.pickle.gz
