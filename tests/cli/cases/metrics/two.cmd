metrics one two
