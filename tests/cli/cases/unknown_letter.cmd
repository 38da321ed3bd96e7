version -q
