man --folder $tmp peak
