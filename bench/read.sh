#!/bin/sh
# SPDX-License-Identifier: MIT
# read.sh BUILD_FOLDER [ORIGIN]: how fast large snapshots are read, beside CPython's pickle.load in
# the same run; figures as CSV (figure.h) on standard output. A million entries with stacks of 36
# frames, the same with 113, and with LARGE=1 in the environment ten million in a file of 3 GB,
# without Python, which needs 10 GB for it. Files go to TMPDIR (/tmp) and are removed.
set -eu

build=$1
origin=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() { # NAME EVENTS DEPTH
    echo "bench: reading $2 entries, stacks of $3 frames" >&2
    "$build/bench/make_snapshot" "$work/$1.pickle" "$2" "$3" 1
    "$build/bench/reader" --origin "$origin" "$build/cli/tarn" "$1" "$work/$1.pickle" "$2"
    if [ "$2" -le 1000000 ] && command -v python3 >/dev/null 2>&1; then
        python3 "$here/python_reader.py" "$origin" "$1" "$work/$1.pickle" "$2"
    fi
    rm -f "$work/$1.pickle"
}

measure 1m 1000000 36
measure 1m_deep 1000000 113
if [ "${LARGE:-}" = 1 ]; then
    measure 10m 10000000 130
fi
