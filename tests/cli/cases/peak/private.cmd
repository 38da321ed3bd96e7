peak -n 2 --pool private $data/snapshots/cudagraph.pickle.gz
