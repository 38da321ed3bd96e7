diff --fail-above 0% --by category $data/snapshots/gpt2_varlen.pickle.gz $data/snapshots/gpt2_varlen_expandable.pickle.gz
