live --by size --json $data/snapshots/tiny.pickle.gz >$tmp/a; "$tarn" live --by size --json --units bytes $data/snapshots/tiny.pickle.gz | cmp $tmp/a - && echo same
