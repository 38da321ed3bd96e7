export --to perfetto $data/snapshots
