#!/bin/sh
# SPDX-License-Identifier: MIT
# replay.sh REPLAY: random traces of stream_cache.pml through the program that replays them.
set -eu
replay=$(realpath "$1")
model=$(cd "$(dirname "$0")" && pwd)/stream_cache.pml

if ! command -v spin >/dev/null 2>&1; then
    echo "skip: traces of the model need spin (package spin)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" # where spin leaves its files
seed=1
while [ $seed -le 50 ]; do
    spin -T -DTRACE -DSLOTS=3 -n$seed -u20000 "$model" >output
    if grep -E 'assertion violated|rror:' output; then # the model's own
        exit 1
    fi
    awk '$2 == "own" || $2 == "heap" || $2 == "cache"' output >trace.$seed
    seed=$((seed + 1))
done
"$replay" trace.*
