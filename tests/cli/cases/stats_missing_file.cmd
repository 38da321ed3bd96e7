stats "$tmp/none.pickle"
