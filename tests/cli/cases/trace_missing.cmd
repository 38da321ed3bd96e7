trace $tmp/none
