#!/bin/sh
# SPDX-License-Identifier: MIT
# replay.sh REPLAY: random traces of stream_cache.pml through the program that replays them.
set -eu
model=stream_cache
# shellcheck source=tests/model/traces.sh
. "$(dirname "$0")/traces.sh"

for seed in $(seq 50); do
    random_run "$seed" 20000 -DSLOTS=3 >run
    awk '$2 == "own" || $2 == "heap" || $2 == "cache"' run >"trace.$seed"
done
"$replay" trace.*
