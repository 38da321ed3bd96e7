#!/bin/sh
# SPDX-License-Identifier: MIT
# driver_exports.sh [LIBRARY]: the memory functions that a driver exports and no row of
# plug/preload/hooks.def or known.def names; exit code 1 if there are any. LIBRARY: libcuda.so.1 of
# this machine by default.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
preload=$here/../../plug/preload
library=${1:-$(ldconfig -p | awk '$1 == "libcuda.so.1" { print $NF; exit }')}
if [ ! -e "$library" ]; then
    echo "no libcuda.so.1 on this machine" >&2
    exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n 's/^RUN_HOOK(\([A-Za-z0-9_]*\), *\([A-Za-z0-9_]*\),.*/\1\n\2/p' "$preload/hooks.def" |
    LC_ALL=C sort -u >"$work/hooks"
sed -n 's/^RUN_KNOWN(\(.*\))$/\1/p' "$preload/known.def" | LC_ALL=C sort -u >"$work/known"
nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $NF); print $NF }' |
    grep '^cuMem' | grep -v '^cuMemcpy\|^cuMemset' | LC_ALL=C sort -u >"$work/exported"
awk -v hooks="$work/hooks" -v known="$work/known" '
    BEGIN {
        while ((getline name <hooks) > 0) hook[name] = 1
        while ((getline name <known) > 0) stem[name] = 1
    }
    {
        plain = $0
        sub(/_.*/, "", plain)
        if (!($0 in hook) && !(plain in stem)) print
    }' "$work/exported" >"$work/new"
if [ -s "$work/new" ]; then
    echo "$library: not followed, and not known:"
    cat "$work/new"
    exit 1
fi
echo "$library: $(wc -l <"$work/exported") memory functions, all known"
