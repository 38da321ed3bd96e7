version -x
