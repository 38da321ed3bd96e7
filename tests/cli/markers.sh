#!/bin/sh
# SPDX-License-Identifier: MIT
# markers.sh PROGRAM MARKER_TOOL MARKERS: a snapshot with some 340 texts that do harm elsewhere, in
# every place of a text, through every report and form (tests/markers/marker_tool.c says what is
# looked for). XML is read by xmllint where that is.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
tool=$2
markers=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for kind in all strict plain; do
    "$tool" make "$markers" $kind >"$work/$kind.json" &&
        "$tarn" convert "$work/$kind.json" "$work/$kind.pickle"
    count "a snapshot of $kind markers" $?
done

# The program's two outputs are fit for a terminal; one of them has a marker in it.
terminal() { # [COMMAND ARGUMENT...]
    "$tarn" "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -ne 70 ] && [ $code -lt 128 ] && "$tool" terminal "$work/out" &&
        "$tool" terminal "$work/err" && [ -s "$work/out" ]
    count "$* : exit code $code" $?
}
with_marker() {
    terminal "$@"
    grep -q '~m[0-9]' "$work/out" "$work/err"
    count "$* shows markers" $?
}

all=$work/all.pickle
strict=$work/strict.pickle
for snapshot in "$all" "$work/all.json"; do
    with_marker info -v "$snapshot"
    with_marker info --json "$snapshot"
    with_marker trace "$snapshot"
    with_marker top --rows 1000 "$snapshot"
    with_marker segments --folded "$snapshot"
done
for by in stack frame function file line category annotation metadata compile module; do
    terminal top --by $by --rows 1000 "$all"
    terminal top --by $by --rows 1000 --json "$all"
    terminal top --by $by --rows 1000 --jsonl "$all"
    terminal top --by $by --rows 1000 --csv "$all"
    terminal diff --by $by --rows 1000 "$all" "$strict"
done
for report in peak live frag churn leaks steps; do
    terminal $report --rows 1000 "$all"
    terminal $report --rows 1000 --json "$all"
    terminal $report --rows 1000 --jsonl "$all"
    terminal $report --rows 1000 --csv "$all"
done
for by in calls module category stream; do
    terminal tree --by $by --min-share 0 "$all"
done
terminal summary "$all"
terminal summary --md "$all"
terminal summary --json "$all"
with_marker live --tree --min-share 0 "$all"
with_marker tree --min-share 0 "$all"
with_marker memory --folded "$all"
with_marker flame --folded -o - "$all"
with_marker diff --folded "$all" "$work/plain.pickle"
terminal check "$all"
terminal check --json "$all"
terminal oom "$all"
terminal stats "$all"
terminal ranks "$all" "$strict"
terminal ranks --json "$all" "$strict"
terminal replay --conf '' "$all"
for form in json jsonl csv perfetto speedscope folded; do
    with_marker export --to $form "$all"
done
"$tarn" info --strict "$all" >"$work/out" 2>"$work/err"
[ $? -eq 3 ] && "$tool" terminal "$work/err" && [ ! -s "$work/out" ]
count "info --strict" $?

# The same text, by other readers.
"$tarn" export --to json "$strict" -o "$work/snapshot.json" &&
    "$tool" json "$markers" "$work/snapshot.json"
count "export --to json: the same texts" $?
"$tarn" export --to jsonl "$strict" -o "$work/rows.jsonl" &&
    "$tool" jsonl "$markers" "$work/rows.jsonl"
count "export --to jsonl: the same texts" $?
"$tarn" top --by metadata --rows 1000 --json "$strict" >"$work/top.json" &&
    "$tool" names "$markers" "$work/top.json"
count "top --json: the same names" $?
"$tarn" live --rows 1000 --jsonl "$strict" >"$work/live.jsonl" &&
    "$tool" jsonl "$markers" "$work/live.jsonl"
count "live --jsonl: the same texts" $?
for table in events stacks annotations; do
    "$tarn" export --to csv --table $table "$strict" -o "$work/$table.csv" &&
        "$tool" csv "$markers" "$work/$table.csv"
    count "export --to csv --table $table: the same texts" $?
done
"$tarn" top --by metadata --rows 1000 --csv "$strict" >"$work/top.csv" &&
    "$tool" cells "$markers" "$work/top.csv"
count "top --csv: the same names" $?
for form in jsonl csv; do
    with_marker export --to $form --table holders "$all"
    with_marker export --to $form --table stacks "$all" "$strict"
done
"$tarn" export --to sqlite "$strict" -o "$work/base.db" && "$tool" sqlite "$markers" "$work/base.db"
count "export --to sqlite: the same texts" $?
for form in perfetto speedscope; do
    "$tarn" export --to $form "$strict" -o "$work/$form.json" &&
        "$tool" parse "$work/$form.json"
    count "export --to $form" $?
done

# Markup: no tag but those that words in the markers' places give.
tags() { # FILE
    "$tool" tags "$1" >"$1.tags"
}
page() { # KIND
    "$tarn" view --title "$title" "$work/$1.pickle" -o "$work/$1.html" && tags "$work/$1.html"
}
title='</title><script>x</script>'
page strict && page plain && [ -s "$work/strict.html.tags" ] &&
    cmp "$work/strict.html.tags" "$work/plain.html.tags"
count "view: no tag of a marker's" $?
ranks_page() { # KIND
    "$tarn" view --ranks --title "$title" "$work/$1.pickle" -o "$work/$1.ranks.html" &&
        tags "$work/$1.ranks.html"
}
ranks_page strict && ranks_page plain && [ -s "$work/strict.ranks.html.tags" ] &&
    cmp "$work/strict.ranks.html.tags" "$work/plain.ranks.html.tags"
count "view --ranks: no tag of a marker's" $?
for kind in strict plain; do
    "$tarn" memory "$work/$kind.pickle" -o "$work/$kind.memory.svg"
    "$tarn" segments "$work/$kind.pickle" -o "$work/$kind.segments.svg"
    "$tarn" flame "$work/$kind.pickle" -o "$work/$kind.flame.svg"
done
for graph in memory segments flame; do
    for kind in strict plain; do
        tags "$work/$kind.$graph.svg"
        sort -u "$work/$kind.$graph.svg.tags" >"$work/$kind.$graph.set"
    done
    [ -s "$work/plain.$graph.set" ] && cmp "$work/strict.$graph.set" "$work/plain.$graph.set" &&
        "$tool" terminal "$work/strict.$graph.svg"
    count "$graph: no tag of a marker's" $?
    if command -v xmllint >/dev/null 2>&1; then
        xmllint --huge --nonet --noout "$work/strict.$graph.svg"
        count "$graph: well-formed" $?
    else
        skip "there is no xmllint"
    fi
done

count_end && [ "$passed" -gt 120 ]
