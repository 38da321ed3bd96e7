#!/bin/sh
# SPDX-License-Identifier: MIT
# tls.sh LIBRARY...: what the libraries keep for each thread is small. A program that loads them
# while it runs (Python does) has about 1.5 KB for all such libraries together, and refuses those
# that do not fit: "cannot allocate memory in static TLS block".
set -eu

limit=896 # builds that check their locks keep 264 of them
bytes=0
for part in $(readelf -lW "$@" | awk '$1 == "TLS" { print $6 }'); do
    bytes=$((bytes + part))
done
if [ "$bytes" -le "$limit" ]; then
    echo "1 passed, 0 failed, 0 skipped"
else
    echo "$* keep $bytes bytes for each thread, more than $limit; the largest:"
    readelf -sW "$@" | awk '$4 == "TLS" { print $3, $8 }' | sort -rn | head -n 5
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
