version --colour
