#!/bin/sh
# SPDX-License-Identifier: MIT
# abi.sh [BUILD_FOLDER [OUTPUT_FOLDER]]: writes the interface of libtarn.so and libtarn-tools.so in
# that build (build/check, which has debug information) as abidw (abigail-tools) sees it: what
# tests/abi/stable.sh compares with. By default to tests/abi, which renews what it compares with:
# after a change of the ABI that CHANGELOG.md tells under ABI.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/check}
output=${2:-$root/tests/abi}

for library in libtarn libtarn-tools; do
    readelf -SW "$build/$library.so" | grep -q '\.debug_info' || {
        echo "abi: $build/$library.so has no debug information: types would be missing" >&2
        exit 1
    }
    abidw --headers-dir "$root/include/tarn" --drop-private-types --drop-undefined-syms \
        --suppressions "$root/tests/abi/private.abignore" --no-corpus-path --no-comp-dir-path \
        --no-show-locs --exported-interfaces-only "$build/$library.so" |
        sed "s#path='$root/#path='#" >"$output/$library.abi"
    gzip -9nf "$output/$library.abi"
done
