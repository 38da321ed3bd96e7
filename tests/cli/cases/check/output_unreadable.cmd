check -o $tmp/c $tmp/none; ls $tmp
