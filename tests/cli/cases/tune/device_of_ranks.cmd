tune --device 0 "$data/snapshots"
