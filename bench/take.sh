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

out=$here/results/$file
mkdir -p "$here/results"
echo "$header" >"$out"
echo "bench: patterns and recorded runs, about half a minute"
"$build/bench/bench" --origin "$origin" "$@" >>"$out"
echo "bench: recording, about two minutes"
"$build/bench/history" --origin "$origin" >>"$out"
"$build/bench/snapshot" --origin "$origin" >>"$out"
"$build/bench/tracker" --origin "$origin" >>"$out"
echo "bench: many live blocks, many streams, about a minute"
"$build/bench/scale" --origin "$origin" >>"$out"
"$here/read.sh" "$build" "$origin" >>"$out"
awk -F, '{ printf "%-19s %-37s %-5s %11s %11s %11s\n", $4, $5, $6, $7, $8, $9 }' "$out"
echo "written to bench/results/$file"
