#!/bin/sh
# SPDX-License-Identifier: MIT
# lag.sh BUILD_FOLDER SNAPSHOT...: what the compact policy does when the device is behind the
# program, by replay: pages that moved stay mapped at their old address until the device has come
# by, and other streams have to wait for them or get new ones. One row per figure, with each lag in
# LAGS (milliseconds), as CSV on standard output. No figure depends on the machine.
set -eu

[ $# -gt 1 ] || {
    echo "usage: bench/lag.sh BUILD_FOLDER SNAPSHOT..." >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
tarn=$1/cli/tarn
shift
# shellcheck source=bench/origin.sh
. "$here/origin.sh"

member() { # NAME FILE
    sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p" "$2"
}

row() { # WORKLOAD LAG FIGURE VALUE
    echo "$origin,compact,$1,$2,$3,$4"
}

out=$(mktemp)
trap 'rm -f "$out"' EXIT
echo "date,machine,commit,allocator,workload,lag_ms,figure,value"
for snapshot; do
    name=$(basename "$snapshot" | sed 's/\.pickle.*//')
    for lag in ${LAGS:-0 5 20 50}; do
        "$tarn" replay --json --conf policy:compact --lag "$lag" "$snapshot" >"$out"
        row "$name" "$lag" reserved_over_active "$(awk -v r="$(member peak_reserved "$out")" \
            -v a="$(member peak_active "$out")" 'BEGIN { printf "%.4f", r / a }')"
        row "$name" "$lag" pages_moved "$(member pages_moved "$out")"
        row "$name" "$lag" retired_pages_peak "$(member retired_pages_peak "$out")"
    done
done
