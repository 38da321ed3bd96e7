#!/bin/sh
# SPDX-License-Identifier: MIT
# documents.sh PROGRAM DOCS: documents that the program writes are the committed ones, and a
# document that differs is told from them. To repair:
#   build/tarn config --markdown >docs/config.md
set -u

tarn=$1
docs=$2
passed=0
failed=0

count() { # NAME STATUS
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1"
    fi
}

"$tarn" config --markdown | diff -u "$docs/config.md" -
count "docs/config.md is what tarn config --markdown prints" $?

! "$tarn" config --markdown | sed 's/max_split/max_spit/' | diff -q "$docs/config.md" - >/dev/null
count "a document that differs is seen" $?

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
