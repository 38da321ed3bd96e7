flame --folded --from step:1 --at step:2 --hide /torch/ $data/snapshots/gpt2_varlen.pickle.gz
