#!/bin/sh
# SPDX-License-Identifier: MIT
# replay_pages.sh REPLAY: random traces of page_mover.pml through the program that replays them.
set -eu
replay=$(realpath "$1")
model=$(cd "$(dirname "$0")" && pwd)/page_mover.pml

if ! command -v spin >/dev/null 2>&1; then
    echo "skip: traces of the model need spin (package spin)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" # where spin leaves its files
seed=1
while [ $seed -le 80 ]; do
    case $((seed % 2)) in
    0) parts= ;;
    1) parts=-DNO_PRIVATE ;;
    esac
    # shellcheck disable=SC2086 # a list of options
    spin -T -DTRACE -DSLOW -DQUEUE=9 -DCALLS=60 -DREPLAYS=20 $parts -n$seed -u10000 "$model" >output
    if grep -E 'assertion violated|rror:' output; then # the model's own
        exit 1
    fi
    grep '^ *trace ' output | grep -vE ' (completed|marked|mark_done|unmapped) ' >trace.$seed
    seed=$((seed + 1))
done
"$replay" trace.*
