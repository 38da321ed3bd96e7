#!/bin/sh
# SPDX-License-Identifier: MIT
# exports.sh LIBRARIES INCLUDE_DIR: the symbols that libtarn.so and libtarn-tools.so export are
# those declared with TARN_API in include/tarn, no more and no fewer (but for what they have in
# private: private.sh). One case a header, and one for what no header
# declares. A C++ file may define with TARN_API what no header declares: torch calls it by name.
#
# A header of which the library has nothing at all belongs to a room that is not in this build (the
# offline half builds alone): that is a skipped case, with its name.
set -eu

libraries=$1
include=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
skipped=0

# Names between TARN_API and the first parenthesis, comments taken out.
declared_in() { # HEADER
    awk '
        { text = text $0 "\n" }
        END {
            while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//)) {
                text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
            }
            gsub(/#[^\n]*/, "", text)
            n = split(text, part, "TARN_API")
            for (i = 2; i <= n; i++) {
                if (match(part[i], /tarn_[a-z0-9_]+[ \n]*\(/)) {
                    name = substr(part[i], RSTART, RLENGTH - 1)
                    gsub(/[ \n]/, "", name)
                    print name
                }
            }
        }' "$1" | LC_ALL=C sort -u
}

# shellcheck disable=SC2086 # a list of files
nm -D --defined-only $libraries |
    awk 'NF == 3 && $2 != "A" && $3 !~ /@@?TARN_PRIVATE$/ { sub(/@.*/, "", $3); print $3 }' |
    LC_ALL=C sort -u >"$work/exported"
: >"$work/all"
for header in "$include"/*.h "$include"/*.cpp; do
    grep -qs TARN_API "$header" || continue
    declared_in "$header" >"$work/declared"
    cat "$work/declared" >>"$work/all"
    missing=$(LC_ALL=C comm -23 "$work/declared" "$work/exported")
    if [ -z "$missing" ]; then
        passed=$((passed + 1))
    elif [ "$missing" = "$(cat "$work/declared")" ]; then
        skipped=$((skipped + 1))
        echo "skip: $(basename "$header"): nothing of it is in this build"
    else
        failed=$((failed + 1))
        echo "$(basename "$header"): declared and not exported:"
        echo "$missing"
    fi
done

LC_ALL=C sort -u "$work/all" >"$work/declared"
LC_ALL=C comm -13 "$work/declared" "$work/exported" >"$work/unknown"
if [ -s "$work/unknown" ]; then
    failed=$((failed + 1))
    echo "exported and not declared with TARN_API in $include:"
    cat "$work/unknown"
else
    passed=$((passed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
