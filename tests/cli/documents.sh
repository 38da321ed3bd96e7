#!/bin/sh
# SPDX-License-Identifier: MIT
# documents.sh PROGRAM DOCS: documents that the program writes are the committed ones, and a
# document that differs is detected. To repair:
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

count_end
