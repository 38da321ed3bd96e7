help version >/dev/full
