#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/performance_table.sh on small files of figures (in performance_table/): the tables that it
# prints, the document that it fills, what it refuses; and that docs/performance.md and README.md
# have what the kept figures say.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
table=$root/tools/performance_table.sh
data=$root/tests/tools/performance_table
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

verdict() { # NAME STATUS: 0 is a pass
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1: failed"
    fi
}

expect_same() { # NAME WANTED GOT
    status=0
    diff "$2" "$3" || status=1
    verdict "$1" $status
}

expect_refused() { # NAME WANTED_STATUS TEXT ARGUMENT...: and the document is as it was
    name=$1 wanted=$2 text=$3
    shift 3
    cp "$work/document" "$work/before"
    status=0
    "$table" "$@" >"$work/output" 2>&1 || status=$?
    if [ "$status" -eq "$wanted" ] && grep -qF -- "$text" "$work/output" &&
        cmp -s "$work/before" "$work/document"; then
        verdict "$name" 0
    else
        echo "exit status $status (expected $wanted):"
        cat "$work/output"
        verdict "$name" 1
    fi
}

"$table" --print "$data/gpu.csv" >"$work/output"
expect_same "patterns, ratios and goals" "$data/gpu.md" "$work/output"

"$table" --print "$data/peers.csv" >"$work/output"
expect_same "other allocators and threads" "$data/peers.md" "$work/output"

"$table" --print "$data/scale.csv" >"$work/output"
expect_same "scale" "$data/scale.md" "$work/output"

"$table" --print "$data/history.csv" >"$work/output"
expect_same "recording" "$data/history.md" "$work/output"

"$table" --print "$data/gpu.csv" "$data/scale.csv" >"$work/output"
{ sed '$d' "$data/gpu.md" && cat "$data/scale.md"; } >"$work/both.md"
expect_same "two runs are two tables" "$work/both.md" "$work/output"

"$table" --summary --print "$data/summary.csv" >"$work/output"
expect_same "a few for the README" "$data/summary.md" "$work/output"

begin='<!-- figures: begin, written by tools/performance_table.sh -->'
end='<!-- figures: end -->'
printf 'before\n%s\nold\n%s\nafter\n' "$begin" "$end" >"$work/document"
{ printf 'before\n%s\n' "$begin" && cat "$data/gpu.md" && printf '%s\nafter\n' "$end"; } \
    >"$work/filled"
"$table" --document "$work/document" "$data/gpu.csv"
expect_same "a document is filled between its markers" "$work/filled" "$work/document"
"$table" --document "$work/document" "$data/gpu.csv"
expect_same "filling it again changes nothing" "$work/filled" "$work/document"

expect_refused "no file" 2 "usage:" --document "$work/document"
expect_refused "a file that is not there" 2 "absent.csv" \
    --document "$work/document" "$work/absent.csv"
echo "allocator,pattern" >"$work/other.csv"
expect_refused "another header" 1 "other.csv:1: is not a file of figures" \
    --document "$work/document" "$data/gpu.csv" "$work/other.csv"
{ cat "$data/gpu.csv" && echo "2026-01-02,Fast,abc1234,tarn,hot_2MiB,ns,12"; } >"$work/cut.csv"
expect_refused "a line cut short" 1 "cut.csv:9: is not a line of figures" \
    --document "$work/document" "$work/cut.csv"
{ cat "$data/gpu.csv" && echo "2026-01-02,Fast,abc1234,tarn,hot_2MiB,ns,nan,1,1"; } >"$work/nan.csv"
expect_refused "what is no number" 1 "nan.csv:9: is not a line of figures" \
    --document "$work/document" "$work/nan.csv"
echo "no markers" >"$work/document"
expect_refused "a document without markers" 1 "has no markers" \
    --document "$work/document" "$data/gpu.csv"

# Both documents name the files that their tables come from.
expect_current() { # DOCUMENT OPTION...
    name=$1
    shift
    cp "$root/$name" "$work/document"
    awk -F'`' '/^From `/ { print $2 }' "$root/$name" >"$work/names"
    while read -r file; do
        set -- "$@" "$root/$file"
    done <"$work/names"
    status=0
    "$table" "$@" || status=1
    verdict "$name names its files" $status
    expect_same "$name has what its files say" "$root/$name" "$work/document"
}
expect_current docs/performance.md --document "$work/document"
expect_current README.md --summary --document "$work/document"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
