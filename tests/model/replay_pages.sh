#!/bin/sh
# SPDX-License-Identifier: MIT
# replay_pages.sh REPLAY: random traces of page_mover.pml, every other one without the private pool,
# through the program that replays them.
set -eu
model=page_mover
# shellcheck source=tests/model/traces.sh
. "$(dirname "$0")/traces.sh"

set -- -DSLOW -DQUEUE=9 -DCALLS=60 -DREPLAYS=20
for seed in $(seq 1 2 80); do
    random_run "$seed" 10000 "$@" -DNO_PRIVATE >"run.$seed"
    random_run $((seed + 1)) 10000 "$@" >"run.$((seed + 1))"
done
for run in run.*; do
    grep '^ *trace ' "$run" | grep -vE ' (completed|marked|mark_done|unmapped) ' \
        >"trace.${run#run.}"
done
"$replay" trace.*
