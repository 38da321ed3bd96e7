run --limit 1GiB -- true
