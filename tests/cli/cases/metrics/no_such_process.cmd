metrics --folder $tmp 1
