#!/bin/sh
# SPDX-License-Identifier: MIT
# take.sh BUILD_FOLDER [SNAPSHOT...]: runs bench, history and scale of a release build and keeps
# what they say in bench/results/DATE-COMMIT-MACHINE.csv. A file of that name is written anew.
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

cmake --build "$build" --target bench_plain >/dev/null

out=$here/results/$file
mkdir -p "$here/results"
{
    echo "$header"
    echo "bench: patterns and recorded runs, with and without the fast path, about a minute" >&2
    "$build/bench/bench" --origin "$origin" "$@"
    "$build/bench/bench_plain" --origin "$origin" --name tarn-without-fast-path "$@"
    echo "bench: recording, snapshots and the tracker, about two minutes" >&2
    "$build/bench/history" --origin "$origin"
    "$build/bench/snapshot" --origin "$origin"
    "$build/bench/tracker" --origin "$origin"
    echo "bench: many live blocks, many streams, about a minute" >&2
    "$build/bench/scale" --origin "$origin"
    "$here/read.sh" "$build" "$origin"
} >"$out"
awk -F, '{ printf "%-19s %-37s %-5s %11s %11s %11s\n", $4, $5, $6, $7, $8, $9 }' "$out"
echo "written to bench/results/$file"
