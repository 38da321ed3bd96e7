completion bas
