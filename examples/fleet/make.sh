#!/bin/sh
# SPDX-License-Identifier: MIT
# make.sh FOLDER [PROGRAM]: sixteen snapshots of a small training job in the new folder, four hosts
# with four ranks each, two pipeline stages; rank 13 keeps memory that it should free. PROGRAM is
# fleet_rank (examples/fleet_rank.c), by default that of a build in this tree. docs/fleet.md
# explains what `tarn ranks` finds.
set -eu

folder=$1
root=$(dirname "$0")/../..
program=${2:-}
for build in release check; do
    [ -n "$program" ] || [ ! -x "$root/build/$build/examples/fleet_rank" ] ||
        program=$root/build/$build/examples/fleet_rank
done
if [ -z "$program" ]; then
    echo "make.sh: build the examples first: make test, or cmake --build --preset release" >&2
    exit 1
fi

mkdir "$folder"
rank=0
while [ "$rank" -lt 16 ]; do
    "$program" "$folder/host$((rank / 4))_pp$((rank / 8))_rank$rank.pickle" "$rank" 13
    rank=$((rank + 1))
done
