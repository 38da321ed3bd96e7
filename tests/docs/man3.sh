#!/bin/sh
# SPDX-License-Identifier: MIT
# man3.sh: the manual pages of section 3, made from the headers by tools/man3.awk: one for each
# header and a link for each function, none with a fault that groff sees.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/count.sh
. "$root/tests/cli/count.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
pages=$work/man3

mkdir "$pages"
awk -v out="$pages" -v version=1.2.3 -f "$root/tools/man3.awk" "$root"/include/tarn/*.h
count "pages are made" $?

# Names behind TARN_API and of inline functions, comments taken out.
functions() {
    sed 's|/\*.*\*/||' "$root"/include/tarn/*.h | tr '\n' ' ' |
        sed 's|/\*[^*]*\*\([^/*][^*]*\*\)*/| |g' |
        grep -oE '(TARN_API|static inline)[^;{(]*\(' | grep -oE 'tarn_[a-z0-9_]+ ?\($' | tr -d ' ('
}
functions | sort -u >"$work/functions"
[ "$(wc -l <"$work/functions")" -gt 200 ]
count "functions are found" $?
missing=0
while read -r name; do
    [ -s "$pages/$name.3" ] || {
        echo "no page for $name"
        missing=1
    }
done <"$work/functions"
count "every function has a page" $missing

missing=0
for header in "$root"/include/tarn/*.h; do
    name=$(basename "$header" .h)
    page=$pages/tarn_$name.3
    grep -q '^\.SH NAME' "$page" && grep -q '^\.SH SYNOPSIS' "$page" || missing=1
done
count "every header has a page" $missing
grep -q 'from free blocks, or by growing' "$pages/tarn_request.3" &&
    grep -q '^\.so man3/tarn_request.3' "$pages/tarn_alloc_try.3"
count "comments are in the page, and links point at it" $?

if command -v groff >/dev/null; then
    for page in "$pages"/*.3; do
        grep -q '^\.so ' "$page" || groff -man -ww -Tutf8 -z "$page" 2>&1
    done >"$work/faults"
    cat "$work/faults"
    [ ! -s "$work/faults" ]
    count "groff sees no fault" $?
else
    skip "there is no groff"
fi
count_end
