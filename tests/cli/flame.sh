#!/bin/sh
# SPDX-License-Identifier: MIT
# flame.sh PROGRAM SNAPSHOTS: flame graphs are well-formed, ask for nothing from elsewhere, and
# their script does what it should. Needs xmllint and node; without them cases are skipped.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
data=$2
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for name in tiny oom cudagraph; do
    "$tarn" segments -o "$work/$name.svg" "$data/$name.pickle.gz"
    ! sed 's#xmlns="http://www.w3.org/2000/svg"##; s#http://www.w3.org/2000/svg##' \
        "$work/$name.svg" | grep -qE '://|xlink|@import|url\('
    count "$name asks for nothing from elsewhere" $?
    if command -v xmllint >/dev/null 2>&1; then
        xmllint --nonet --noout "$work/$name.svg"
        count "$name is well-formed" $?
    else
        skip "there is no xmllint"
    fi
done
if command -v node >/dev/null 2>&1; then
    "$tarn" memory -o "$work/memory.svg" "$data/tiny.pickle.gz"
    node "$here/flame.mjs" "$work/memory.svg"
    count "the script zooms, searches and says what is under the pointer" $?
else
    skip "there is no node"
fi

count_end
