tree --sort name --depth 2 --at end $data/snapshots/oom.pickle.gz
