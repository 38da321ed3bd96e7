#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_headers.sh rejects headers that lean on others or on newer C, or do not say what
# threads may do. This tree is for lint to check.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
check=$here/../../tools/check_headers.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

count() { # NAME WANTED_STATUS ROOT
    status=0
    "$check" "$3" >"$work/output" 2>&1 || status=$?
    if [ "$status" -eq "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1: exit status $status, expected $2"
        cat "$work/output"
    fi
}

sample() { # NAME WANTED_STATUS PATH LINE: a tree of one header
    mkdir -p "$work/$1/$(dirname "$3")" "$work/$1/src"
    echo "$4" >"$work/$1/$3"
    count "$1" "$2" "$work/$1"
}

sample "complete" 0 src/base/a.h '#include <stddef.h>
extern size_t a;'
skips=$(grep '^skip: ' "$work/output" || true)
sample "needs another header" 1 src/base/a.h 'extern size_t a;'
sample "newer than C99" 1 include/tarn/a.h '/* Any thread. */ _Static_assert(1, "a");'
sample "about threads" 0 include/tarn/a.h '/* Any thread. */ extern int a;'
sample "not a word about them" 1 include/tarn/a.h 'extern int a;'
if [ -n "$skips" ]; then
    echo "$skips"
    skipped=1
else
    skipped=0
    sample "not C++" 1 include/tarn/a.h '/* Any thread. */ extern int class;'
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
