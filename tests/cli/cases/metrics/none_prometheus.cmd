metrics --quiet --folder $tmp --format prometheus all
