#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the program on every case of a folder and compares what it prints.
#
#   run.sh [--update] PROGRAM CASES [NAME...]
#
# A case is a set of files that begin with its name, COMMAND/NAME, in the folder of its command:
#   NAME.cmd          arguments of the program, as the shell reads them; $data is tests/data and
#                     $tmp an empty folder of this case; a pipeline may follow
#   NAME.stdout       exact standard output; or
#   NAME.stdout.glob  a shell pattern for all of it (`*` also matches line ends)
#   NAME.stderr.glob  a shell pattern for the standard error; without it nothing may be printed
#   NAME.exit         exit code; without it 0
# Standard output must be empty when neither of its files is there. --update writes NAME.stdout,
# NAME.exit and missing or wrong NAME.stderr.glob from what the program does; NAME.stdout.glob is
# left alone. Prints one line and a diff per failing case, then a count. Exits with 1 if any failed.
#
# A case that must prepare something first begins with "version >/dev/null;", since NAME.cmd begins
# with arguments, and runs "$tarn" then. Such cases are in version/, whatever command they test.
set -u

update=no
if [ "${1-}" = --update ]; then
    update=yes
    shift
fi
if [ $# -lt 2 ]; then
    echo "usage: run.sh [--update] PROGRAM CASES [NAME...]" >&2
    exit 2
fi
tarn=$1
cases=$2
shift 2
data=$(cd "$cases/../../data" 2>/dev/null && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
unset NO_COLOR CLICOLOR_FORCE COLUMNS
LC_ALL=C
TERM=dumb
export LC_ALL TERM data tarn

# There are hundreds of cases, and a process takes as long as most of them: what the shell can do by
# itself is done by it.

# read_text FILE: leaves its contents in $text, newlines at the end aside.
read_text() {
    text=
    while IFS= read -r line || [ -n "$line" ]; do
        text=$text$line$newline
    done <"$1"
    while [ "${text%"$newline"}" != "$text" ]; do
        text=${text%"$newline"}
    done
}
newline='
'

# is_empty FOLDER
is_empty() {
    set -- "$1"/* "$1"/.[!.]*
    [ ! -e "$1" ] && [ ! -e "$2" ]
}

tmp=$work/tmp
export tmp
mkdir "$tmp"

# run_case NAME: leaves out, err and code in $work.
run_case() {
    if [ ! -d "$tmp" ] || ! is_empty "$tmp"; then
        rm -rf "$tmp"
        mkdir "$tmp"
    fi
    read_text "$cases/$1.cmd"
    (eval "\"\$tarn\" $text") >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

# matches FILE PATTERN_FILE: whole contents, newlines at the end aside.
matches() {
    read_text "$2"
    pattern=$text
    read_text "$1"
    # shellcheck disable=SC2254
    case $text in
    $pattern) return 0 ;;
    esac
    return 1
}

# compare_stream FILE EXACT GLOB: prints a diff and fails when the contents are not as expected.
compare_stream() {
    if [ -f "$3" ]; then
        matches "$1" "$3" || { diff -u "$3" "$1"; return 1; }
    elif [ -f "$2" ]; then
        cmp -s "$2" "$1" || diff -u "$2" "$1"
    elif [ -s "$1" ]; then
        diff -u /dev/null "$1"
    fi
}

# check_case NAME: prints what differs.
check_case() {
    wanted=0
    good=0
    [ -f "$cases/$1.exit" ] && read -r wanted <"$cases/$1.exit"
    compare_stream "$work/out" "$cases/$1.stdout" "$cases/$1.stdout.glob" || good=1
    compare_stream "$work/err" /nonexistent "$cases/$1.stderr.glob" || good=1
    if [ "$code" != "$wanted" ]; then
        echo "exit code $code, expected $wanted"
        good=1
    fi
    return $good
}

# rewrite_case NAME: makes the files say what the program did.
rewrite_case() {
    if [ ! -f "$cases/$1.stdout.glob" ]; then
        rm -f "$cases/$1.stdout"
        [ -s "$work/out" ] && cp "$work/out" "$cases/$1.stdout"
    fi
    if [ ! -s "$work/err" ]; then
        rm -f "$cases/$1.stderr.glob"
    elif [ ! -f "$cases/$1.stderr.glob" ] || ! matches "$work/err" "$cases/$1.stderr.glob"; then
        sed 's/[][*?\\]/\\&/g' "$work/err" >"$cases/$1.stderr.glob"
    fi
    rm -f "$cases/$1.exit"
    [ "$code" = 0 ] || echo "$code" >"$cases/$1.exit"
}

if [ $# -eq 0 ]; then
    for file in "$cases"/*/*.cmd; do
        name=${file#"$cases"/}
        set -- "$@" "${name%.cmd}"
    done
fi
number=0
total=0
failed=0
share=${TARN_TEST_SHARE:-1} # tools/run_tests.sh
folder=
for name in "$@"; do
    # A share of them with a sanitizer, and the first of every command.
    number=$((number + 1))
    [ $((number % share)) -eq 0 ] || [ "${name%/*}" != "$folder" ] || continue
    folder=${name%/*}
    if [ -n "${TARN_NO_PRELOAD:-}" ] && grep -q '^run .*-- ' "$cases/$name.cmd"; then
        echo "skip: $name: a sanitizer's runtime must come before what is preloaded"
        continue
    fi
    total=$((total + 1))
    run_case "$name"
    if [ $update = yes ]; then
        rewrite_case "$name"
    elif ! check_case "$name" >"$work/diff"; then
        failed=$((failed + 1))
        echo "FAIL $name: tarn $(cat "$cases/$name.cmd")"
        sed 's/^/    /' "$work/diff"
    fi
done
echo "$total cases, $failed failed"
[ $total -gt 0 ] && [ $failed -eq 0 ]
