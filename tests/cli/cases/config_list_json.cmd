config --json
