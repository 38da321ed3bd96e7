replay "$tmp/none.pickle"
