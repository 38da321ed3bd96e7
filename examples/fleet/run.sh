#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh TARN [FLEET_RANK]: makes a small fleet (make.sh) and explains it, as one would a large one:
# each host summarises its ranks, the summaries are merged, and `tarn ranks` says who stands out.
# Then checks that it found the rank that keeps memory, by its stack, and no other.
set -u
export LC_ALL=C

tarn=$1
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

says() { # WHAT FILE PATTERN
    if grep -q -- "$3" "$2"; then
        passed=$((passed + 1))
    else
        echo "FAIL $1: nothing in the output is like $3"
        failed=$((failed + 1))
    fi
}

"$here/make.sh" "$work/dumps" "${2:-}" || exit 1

# On each host.
for host in 0 1 2 3; do
    "$tarn" summarize "$work/dumps/host$host"_* -o "$work/host$host.tsum" || failed=$((failed + 1))
done

# On one of them.
"$tarn" merge "$work"/host*.tsum -o "$work/all.tsum" || failed=$((failed + 1))
"$tarn" ranks --device-total 4GiB --since-step 4 "$work/all.tsum" | sed "s#$work/dumps/##g" |
    tee "$work/report"

says "an outlier" "$work/report" 'host3_pp1_rank13.pickle, device 0  outlier$'
says "what it holds" "$work/report" 'new .*debug.py:17:keep_logits'
says "like ranks" "$work/report" ' 8 .* 0 .* pp=0$'
says "growth" "$work/report" 'MiB *4  host3_pp1_rank13.pickle, device 0  debug.py:17:keep_logits'
grep 'outlier$' "$work/report" >"$work/outliers"
[ "$(wc -l <"$work/outliers")" -eq 1 ] && passed=$((passed + 1)) || failed=$((failed + 1))
"$tarn" export --to csv --table ranks "$work/all.tsum" >"$work/ranks.csv"
says "the same as a table" "$work/ranks.csv" 'rank13.pickle.*,1,[0-9.]*,0'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
