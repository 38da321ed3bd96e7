#!/bin/sh
# SPDX-License-Identifier: MIT
# tidy.sh BUILD_DIR CACHE_DIR KEY FILE...: clang-tidy on files, but for those of which the same
# contents under the same KEY (settings, flags and headers) passed before. Part of lint.sh, which
# sets ANALYZER_NODES.
set -eu

build=$1
cache=$2
key=$3
shift 3

stamp_of() { # FILE
    echo "$cache/$key-$(sha256sum <"$1" | cut -c1-16)"
}

for file in "$@"; do
    shift
    [ -e "$(stamp_of "$file")" ] || set -- "$@" "$file"
done
[ $# -gt 0 ] || exit 0
checks=
[ "$ANALYZER_NODES" -gt 0 ] || checks='-clang-analyzer-*' # added to those of .clang-tidy
output=$(clang-tidy --quiet --warnings-as-errors='*' --checks="$checks" -p "$build" \
    --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang \
    --extra-arg="max-nodes=$ANALYZER_NODES" "$@" 2>/dev/null) || {
    echo "$output"
    exit 1
}
for file in "$@"; do
    : >"$(stamp_of "$file")"
done
