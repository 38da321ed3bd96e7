#!/bin/sh
# SPDX-License-Identifier: MIT
# replay_latch.sh REPLAY: random traces of latch.pml through the program that replays them.
set -eu
model=latch
# shellcheck source=tests/model/traces.sh
. "$(dirname "$0")/traces.sh"

for seed in $(seq 30); do
    random_run "$seed" 10000 >run
    grep -E '^ *(writer|memory|reader|late) ' run >"trace.$seed"
done
"$replay" trace.*
