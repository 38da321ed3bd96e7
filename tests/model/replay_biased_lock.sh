#!/bin/sh
# SPDX-License-Identifier: MIT
# replay_biased_lock.sh REPLAY: traces of biased_lock.pml through the program that replays them.
set -eu
replay=$(realpath "$1")
model=$(cd "$(dirname "$0")" && pwd)/biased_lock.pml

if ! command -v spin >/dev/null 2>&1; then
    echo "skip: traces of the model need spin (package spin)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" # where spin leaves its files
seed=1
while [ $seed -le 40 ]; do
    case $((seed % 2)) in
    0) spin -T -DTRACE -n$seed -u30000 "$model" >output ;;
    *) spin -T -DTRACE -DVISIT -n$seed -u30000 "$model" >output ;;
    esac
    if grep -E 'assertion violated|rror:' output; then # the model's own
        exit 1
    fi
    grep -E '^ *[0-2] [a-z]+ [0-9]+ [0-9]+$' output >trace.$seed
    seed=$((seed + 1))
done
"$replay" trace.*
