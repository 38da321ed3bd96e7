#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD_FOLDER: what `tarn run` costs a call of the driver, on a driver that does next to
# nothing (null_driver.c): nanoseconds per cuMemAlloc with its cuMemFree. Needs the build of
# `bench_programs`.
set -eu

build=${1:?usage: bench/preload/run.sh BUILD_FOLDER}
tarn=$build/cli/tarn
pairs=$build/bench/preload/preload_pairs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/driver"
ln -s "$(readlink -f "$build/bench/preload/libpreload_null.so")" "$work/driver/libcuda.so.1"
LD_LIBRARY_PATH=$work/driver
export LD_LIBRARY_PATH

echo "| live blocks | frames | alone | stacks none | frame pointers | unwind |"
echo "|--:|--:|--:|--:|--:|--:|"
for live in 1 1000 10000; do
    for frames in 5 30; do
        row="| $live | $frames | $("$pairs" "$live" "$frames")"
        for stacks in none frame-pointers unwind; do
            ns=$("$tarn" run -f --record "$work/run.pickle" --stacks "$stacks" -- \
                "$pairs" "$live" "$frames")
            row="$row | $ns"
        done
        echo "$row |"
    done
done
