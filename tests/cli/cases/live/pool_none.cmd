live --json --pool private $data/snapshots/oom.pickle.gz
