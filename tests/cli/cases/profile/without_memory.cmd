profile $data/measured.json $tmp/x
