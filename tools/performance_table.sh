#!/bin/sh
# SPDX-License-Identifier: MIT
# performance_table.sh [--summary] [--print | --document FILE] FILE.csv...: figures as tables, so
# that nobody copies a number by hand. Each CSV file (bench/figure.h) is one run and becomes a table
# of its own: figures of different runs are not compared. Prints them, or puts them between the
# markers of the document, by default docs/performance.md; with --summary a few of them, by default
# in README.md. Exit status 1 if a file is not such a CSV file.
set -eu

tools=$(cd "$(dirname "$0")" && pwd)
document=$tools/../docs/performance.md
summary=0
begin='<!-- figures: begin, written by tools/performance_table.sh -->'
end='<!-- figures: end -->'

usage() {
    echo "usage: tools/performance_table.sh [--summary] [--print | --document FILE] FILE.csv..." >&2
    exit 2
}

if [ "${1:-}" = --summary ]; then
    summary=1
    document=$tools/../README.md
    shift
fi
case ${1:-} in
--print)
    document=
    shift
    ;;
--document)
    [ $# -gt 1 ] || usage
    document=$2
    shift 2
    ;;
esac
[ $# -gt 0 ] || usage

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LC_ALL=C awk -v summary=$summary -f "$tools/performance_table.awk" "$@" >"$work/tables"
if [ -z "$document" ]; then
    cat "$work/tables"
    exit
fi
if ! grep -qxF -- "$begin" "$document" || ! grep -qxF -- "$end" "$document"; then
    echo "performance_table: $document has no markers: $begin ... $end" >&2
    exit 1
fi
awk -v begin="$begin" -v end="$end" -v tables="$work/tables" '
    $0 == end { inside = 0 }
    !inside { print }
    $0 == begin {
        inside = 1
        while ((getline line < tables) > 0) {
            print line
        }
    }' "$document" >"$work/document"
cat "$work/document" >"$document"
