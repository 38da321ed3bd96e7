#!/bin/sh
# SPDX-License-Identifier: MIT
# replay_latch.sh REPLAY: random traces of latch.pml through the program that replays them.
set -eu
replay=$(realpath "$1")
model=$(cd "$(dirname "$0")" && pwd)/latch.pml

if ! command -v spin >/dev/null 2>&1; then
    echo "skip: traces of the model need spin (package spin)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" # where spin leaves its files
seed=1
while [ $seed -le 30 ]; do
    spin -T -DTRACE -n$seed -u10000 "$model" >output
    if grep -E 'assertion violated|rror:' output; then # the model's own
        exit 1
    fi
    grep -E '^ *(writer|memory|reader|late) ' output >trace.$seed
    seed=$((seed + 1))
done
"$replay" trace.*
