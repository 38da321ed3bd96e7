#!/bin/sh
# SPDX-License-Identifier: MIT
# Every sample in this folder gets from tools/check_source.sh exactly the messages that it expects.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
check=$here/../../tools/check_source.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

for sample in "$here"/*.sample; do
    root=$work/$(basename "$sample" .sample)
    mkdir "$root"
    grep '^expect ' "$sample" | sed 's/^expect //' | LC_ALL=C sort >"$work/expected" || true
    awk -v root="$root" '
        /^expect / { next }
        /^file / {
            close(out)
            out = root "/" $2
            folder = out
            sub(/\/[^\/]*$/, "", folder)
            system("mkdir -p \"" folder "\"")
            next
        }
        { print >out }' "$sample"
    status=0
    "$check" "$root" >"$work/unsorted" 2>&1 || status=$?
    LC_ALL=C sort "$work/unsorted" >"$work/actual"
    wanted=0
    [ ! -s "$work/expected" ] || wanted=1
    if [ "$status" -eq "$wanted" ] && cmp -s "$work/expected" "$work/actual"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$(basename "$sample"): exit status $status, expected $wanted; expected and actual:"
        diff -u "$work/expected" "$work/actual" || true
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
