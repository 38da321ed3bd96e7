help >/dev/full
