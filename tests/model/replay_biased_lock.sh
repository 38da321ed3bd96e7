#!/bin/sh
# SPDX-License-Identifier: MIT
# replay_biased_lock.sh REPLAY: traces of biased_lock.pml, every other one with a visitor, through
# the program that replays them.
set -eu
model=biased_lock
# shellcheck source=tests/model/traces.sh
. "$(dirname "$0")/traces.sh"

for seed in $(seq 1 2 40); do
    random_run "$seed" 30000 -DVISIT >"run.$seed"
    random_run $((seed + 1)) 30000 >"run.$((seed + 1))"
done
for run in run.*; do
    grep -E '^ *[0-2] [a-z]+ [0-9]+ [0-9]+$' "$run" >"trace.${run#run.}"
done
"$replay" trace.*
