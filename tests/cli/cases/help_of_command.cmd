help version
