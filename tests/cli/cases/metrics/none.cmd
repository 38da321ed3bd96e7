metrics --folder $tmp
