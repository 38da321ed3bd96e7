#!/bin/sh
# SPDX-License-Identifier: MIT
# documents.sh PROGRAM DOCS: documents that the program writes are the committed ones, and a
# document that differs is detected; and help and explain topics fit 80 columns. To repair a
# document:
#   build/tarn config --markdown >docs/config.md
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
docs=$2

"$tarn" config --markdown | diff -u "$docs/config.md" -
count "docs/config.md is what tarn config --markdown prints" $?

! "$tarn" config --markdown | sed 's/max_split/max_spit/' | diff -q "$docs/config.md" - >/dev/null
count "a document that differs is seen" $?

# Examples are commands, which have no line breaks.
wide=$({
    "$tarn" help
    "$tarn" help | awk '/^Options:/ { exit } /^  / { print $1 }' | while read -r command; do
        "$tarn" help "$command" | sed '/^Examples:/,$d'
    done
    "$tarn" explain | awk '!/^"/ && NF { print $1 }' | while read -r topic; do
        "$tarn" explain "$topic"
    done
} | awk 'length > 80')
[ -z "$wide" ] || printf '%s\n' "$wide"
[ -z "$wide" ]
count "help and explain topics fit 80 columns" $?

count_end
