#!/bin/sh
# SPDX-License-Identifier: MIT
# record.sh OUT_FOLDER: records all cases of record.py on a GPU, JOBS at a time (default 6), into
# OUT_FOLDER/what_if.tar, which check.py reads. What failed to record is in OUT_FOLDER/log.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=${JOBS:-6}
started=0
python3 "$here/record.py" list >"$work/cases"
while read -r case settings fraction; do
    {
        timeout 120 python3 "$here/record.py" "$case" "$settings" "$fraction" "$work" ||
            echo "FAILED: $case $settings $fraction"
    } >>"$work/log" 2>&1 </dev/null &
    started=$((started + 1))
    [ $((started % jobs)) -ne 0 ] || wait
done <"$work/cases"
wait
cp "$work/log" "$out/log"
tar -C "$work" -cf - --exclude log --exclude cases . | split -b 15m - "$out/what_if.tar."
grep FAILED "$out/log" || echo "all cases are recorded"
