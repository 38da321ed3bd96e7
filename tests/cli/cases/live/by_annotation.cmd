live --at peak --by annotation --json $data/snapshots/multistream.pickle.gz
