#!/bin/sh
# SPDX-License-Identifier: MIT
# without.sh: a build without zlib, zstd, SQLite, jansson, libdw, libmicrohttpd and the page reads
# and reports what it can, and says of the rest what it was not built with.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/count.sh
. "$root/tests/cli/count.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
recordings=$root/tests/data/snapshots

options=""
for library in ZLIB ZSTD SQLITE JANSSON LIBDW METRICS PAGE; do
    options="$options -DTARN_$library=OFF"
done

it_builds() {
    {
        # shellcheck disable=SC2086 # a list of options
        cmake -S "$root" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTARN_BUILD_PLUG=OFF \
            -DTARN_BUILD_BENCH=OFF -DTARN_LINK_PROGRAM=OFF $options &&
            cmake --build "$work/build" --target tarn_program tarn_tools_shared
    } >"$work/log" 2>&1 || {
        tail -n 30 "$work/log"
        return 1
    }
}

needs_none() { # FILE
    readelf -dW "$1" >"$work/said" && grep -q 'NEEDED.*libc\.so' "$work/said" &&
        ! grep -E 'NEEDED.*lib(z|zstd|sqlite3|jansson|dw|microhttpd)\.so' "$work/said"
}

# The exit status and what is said on the way.
says() { # STATUS TEXT argument...
    status=$1
    text=$2
    shift 2
    said=0
    "$work/build/cli/tarn" "$@" >"$work/output" 2>&1 || said=$?
    if [ "$said" -ne "$status" ] || ! grep -q -- "$text" "$work/output"; then
        echo "exit status $said"
        cat "$work/output"
        return 1
    fi
}

it_builds
count "it builds" $?
needs_none "$work/build/libtarn-tools.so"
count "libtarn-tools.so needs none of those libraries" $?
needs_none "$work/build/cli/tarn"
count "the program needs none of those libraries" $?

gzip -dc "$recordings/tiny.pickle.gz" >"$work/plain.pickle"
gzip -dc "$root/tests/data/snapshots/tiny.pickle.gz" | zstd -q -o "$work/plain.pickle.zst" \
    2>/dev/null || printf '\050\265\057\375 no more' >"$work/plain.pickle.zst"
says 0 '^peak: ' peak "$work/plain.pickle"
count "a plain snapshot is read" $?
says 3 'not built with zlib' peak "$recordings/tiny.pickle.gz"
count "gzip" $?
says 3 'not built with libzstd' peak "$work/plain.pickle.zst"
count "zstd" $?
says 3 'not built with zlib' convert "$work/plain.pickle" "$work/out.pickle.gz"
count "a name that ends in .gz" $?
says 3 'not built with SQLite' export --to sqlite "$work/plain.pickle" -o "$work/out.sqlite"
count "SQLite" $?
says 3 'not built with it' view "$work/plain.pickle" -o "$work/out.html"
count "the page" $?
says 3 'not built with jansson' replay "$work/plain.pickle" --measured \
    "$root/tests/data/measured.json" --workload tiny
count "measured figures" $?
says 3 'not built with libmicrohttpd' metrics --folder "$work" --listen 0
count "serving metrics" $?
says 0 '^# EOF' metrics --folder "$work"
count "metrics" $?
[ -z "$(find "$work" -maxdepth 1 -name 'out.*')" ]
count "nothing is left behind" $?
count_end
