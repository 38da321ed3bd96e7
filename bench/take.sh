#!/bin/sh
# SPDX-License-Identifier: MIT
# take.sh BUILD_FOLDER [SNAPSHOT...]: runs the benchmarks of a release build, tarn and the other
# allocators that are found (peers/build.sh) in turns, and keeps what they say in
# bench/results/DATE-COMMIT-MACHINE.csv. A file of that name is written anew, once all is done.
# SCALE (1) multiplies the number of operations; below 1, no more than a million blocks are live.
set -eu

[ $# -gt 0 ] || {
    echo "usage: bench/take.sh BUILD_FOLDER [SNAPSHOT...]" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift
# shellcheck source=bench/origin.sh
. "$here/origin.sh"

scale=${SCALE:-1}
largest=10000000
if awk -v scale="$scale" 'BEGIN { exit !(scale < 1) }'; then
    largest=1000000
fi
"$here/peers/build.sh" "$build"

out=$here/results/$file
mkdir -p "$here/results"
{
    echo "$header"
    echo "bench: patterns, in turns, about two minutes" >&2
    "$build/bench/compare" --origin "$origin" --scale "$scale" --turn 0.2 --rounds 5 \
        "$build/bench"
    echo "bench: recorded runs" >&2
    "$build/bench/bench" --origin "$origin" --only '^replay_' "$@"
    echo "bench: recording, snapshots and the tracker, about a minute" >&2
    "$build/bench/history" --origin "$origin" --scale "$scale"
    "$build/bench/snapshot" --origin "$origin"
    "$build/bench/tracker" --origin "$origin" --scale "$scale"
    "$build/bench/engine" --origin "$origin" --scale "$scale"
    echo "bench: many live blocks, many streams, about a minute" >&2
    "$build/bench/scale" --origin "$origin" --largest "$largest"
    "$here/read.sh" "$build" "$origin"
} >"$build/bench/figures.csv"
mv "$build/bench/figures.csv" "$out"
awk -F, '{ printf "%-24s %-37s %-5s %11s %11s %11s\n", $4, $5, $6, $7, $8, $9 }' "$out"
echo "written to bench/results/$file"
