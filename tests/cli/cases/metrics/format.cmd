metrics --format json
