#!/bin/sh
# SPDX-License-Identifier: MIT
# record.sh OUT_FOLDER: records all cases of record.py on a GPU, JOBS at a time (default 6), into
# OUT_FOLDER/what_if.tar, which check.py reads. What failed to record is in OUT_FOLDER/log.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$here/record.py" list | xargs -P "${JOBS:-6}" -L 1 sh -c '
    timeout 120 python3 "$0/record.py" "$2" "$3" "$4" "$1" >>"$1/log" 2>&1 ||
        echo "FAILED: $2 $3 $4" >>"$1/log"' "$here" "$work"
cp "$work/log" "$out/log"
tar -C "$work" -cf - --exclude log . | split -b 15m - "$out/what_if.tar."
grep FAILED "$out/log" || echo "all cases are recorded"
