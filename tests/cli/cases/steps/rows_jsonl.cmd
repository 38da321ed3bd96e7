steps -n 1 --jsonl $data/snapshots/multistream.pickle.gz
