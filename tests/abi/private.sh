#!/bin/sh
# SPDX-License-Identifier: MIT
# private.sh LIBTARN LIBTARN_TOOLS: what libtarn.so exports for libtarn-tools.so alone
# (src/libtarn.map) is what that needs of it, and no more. What is missing there the linker says.
set -eu

core=$1
tools=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

private_of() { # [nm's option]... LIBRARY
    nm -D "$@" | awk '$NF ~ /@@?TARN_PRIVATE$/ { sub(/@.*/, "", $NF); print $NF }' |
        LC_ALL=C sort -u
}

private_of --defined-only "$core" >"$work/given"
private_of --undefined-only "$tools" >"$work/taken"
if [ ! -s "$work/given" ] || [ ! -s "$work/taken" ]; then
    echo "no function has the version TARN_PRIVATE: nothing can be compared"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
if LC_ALL=C comm -23 "$work/given" "$work/taken" | grep -v '^tn_assert_failed$' >"$work/idle"; then
    echo "in src/libtarn.map, and no longer called by libtarn-tools.so:"
    cat "$work/idle"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
echo "1 passed, 0 failed, 0 skipped"
