#!/bin/sh
# SPDX-License-Identifier: MIT
# sanitized.sh TARN LINKED DRIVER: a program that is linked with libtarn_preload.so, because a
# sanitizer's library must come first, does what it does without: observed and served, with threads.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/../cli/count.sh"

tarn=$1
linked=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
# What the program and the fake driver keep to the end is no leak of the library's.
ASAN_OPTIONS=detect_leaks=0
LD_LIBRARY_PATH=$3
export ASAN_OPTIONS LD_LIBRARY_PATH

for what in work threads; do
    "$linked" $what >plain 2>said
    for policy in observe native compact; do
        for stacks in unwind none; do
            TARN_RUN_POLICY=$policy TARN_RUN_STACKS=$stacks TARN_RUN_RECORD=$work/$policy.pickle \
                TARN_RUN_LEADER=1 "$linked" $what >followed 2>said
            code=$?
            [ $code -eq 3 ] && cmp -s plain followed && [ ! -s said ]
            result=$?
            [ $result -eq 0 ] || { diff plain followed; cat said; }
            count "$what, $policy, stacks by $stacks" $result
        done
    done
done
for file in ./*.pickle; do
    "$tarn" check "$file" >said 2>&1
    count "tarn check $file" $?
done
count_end
