#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/upstream.md against the tests: every file and case that it names exists, the file says the
# upstream name, and a row that names none gives a reason. First the check itself, on bad rows.
set -eu

tests=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# "UPSTREAM|FILE|CASES|NOTES" of each row of a table.
rows() { # TABLE
    awk -F'|' '/^\| `test_/ {
        gsub(/`/, "")
        upstream = $2; here = $3; notes = $4
        gsub(/^ +| +$/, "", upstream); gsub(/^ +| +$/, "", here); gsub(/^ +| +$/, "", notes)
        file = here; sub(/ .*/, "", file)
        cases = here; if (!sub(/^[^ ]+ +/, "", cases)) cases = ""
        print upstream "|" file "|" cases "|" notes
    }' "$1"
}

check_row() { # ROOT UPSTREAM FILE CASES NOTES: says what is wrong with the row
    if [ -z "$3" ]; then
        [ -n "$5" ] || echo "$2: neither a test nor a reason"
        return
    fi
    if [ ! -f "$1/$3" ]; then
        echo "$2: there is no $3"
        return
    fi
    grep -qw -- "$2" "$1/$3" || echo "$2: $3 does not say its name"
    [ -n "$4" ] || echo "$2: no case of $3"
    for case in $4; do
        grep -q -e "cmocka_unit_test($case)" -e "^def $case(" "$1/$3" ||
            echo "$2: $3 does not run $case"
    done
}

check_table() { # ROOT TABLE: one line a row that is wrong
    rows "$2" | while IFS='|' read -r upstream file cases notes; do
        check_row "$1" "$upstream" "$file" "$cases" "$notes"
    done
}

expect() { # NAME WANTED ACTUAL
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s: expected "%s", got "%s"\n' "$1" "$2" "$3"
    fi
}

printf '/* test_known */\nstatic void one(void **state)\n    cmocka_unit_test(one),\n' >"$work/t.c"
printf '# test_known\ndef two():\n' >"$work/t.py"
sample() { # NAME WANTED ROW
    printf '| upstream | here | notes |\n|---|---|---|\n%s\n' "$3" >"$work/table.md"
    expect "$1" "$2" "$(check_table "$work" "$work/table.md")"
}
# shellcheck disable=SC2016 # backticks of Markdown
{
    sample "a good row" "" '| `test_known` | `t.c` `one` | |'
    sample "a reason" "" '| `test_pinned` | | pinned memory |'
    sample "no reason" "test_pinned: neither a test nor a reason" '| `test_pinned` | | |'
    sample "no file" "test_known: there is no u.c" '| `test_known` | `u.c` `one` | |'
    sample "no such case" "test_known: t.c does not run two" \
        '| `test_known` | `t.c` `one` `two` | |'
    sample "no case" "test_known: no case of t.c" '| `test_known` | `t.c` | |'
    sample "another name" "test_kno: t.c does not say its name" '| `test_kno` | `t.c` `one` | |'
}

rows "$tests/upstream.md" >"$work/rows"
expect "rows that could not be read" \
    "$(grep -c '^| *`' "$tests/upstream.md")" "$(wc -l <"$work/rows" | tr -d ' ')"
while IFS='|' read -r upstream file cases notes; do
    expect "$upstream" "" "$(check_row "$tests" "$upstream" "$file" "$cases" "$notes")"
done <"$work/rows"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
