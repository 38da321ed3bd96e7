ranks --jsonl $data/snapshots/tiny.pickle.gz | sed "s#$data#DATA#"
