#!/bin/sh
# SPDX-License-Identifier: MIT
# tidy_one.sh BUILD_DIR CACHE_DIR KEY FILE: clang-tidy on one file, unless the same contents under
# the same KEY (settings, flags and headers) passed before. Part of lint.sh, which sets
# ANALYZER_NODES.
set -eu

stamp=$2/$3-$(sha256sum <"$4" | cut -c1-16)
[ ! -e "$stamp" ] || exit 0
output=$(clang-tidy --quiet --warnings-as-errors='*' -p "$1" --extra-arg=-Xclang \
    --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg="max-nodes=$ANALYZER_NODES" \
    "$4" 2>/dev/null) || {
    echo "$output"
    exit 1
}
: >"$stamp"
