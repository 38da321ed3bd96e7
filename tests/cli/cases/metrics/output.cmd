metrics --folder $tmp other -o $tmp/out; cat $tmp/out
