#!/bin/sh
# SPDX-License-Identifier: MIT
# hostile.sh PROGRAM HOSTILE: files that were made to do harm. Those of HOSTILE/unsafe ask to import
# or call something: exit code 4, nothing on standard output, and one line on standard error that
# shows no control character of theirs. Those of HOSTILE/limits are damaged or want too much: exit
# code 3, 5 or 7. Those of HOSTILE/numbers have sizes and times at the ends of their types: every
# report takes them, and a sanitizer sees what overflows.
set -u

tarn=$1
hostile=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

# Leaves code, and whether nothing but one harmless line was said.
run() { # COMMAND FILE
    timeout 60 "$tarn" "$1" "$2" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ "$(wc -l <"$work/err")" -eq 1 ] &&
        ! LC_ALL=C tr -d '\n' <"$work/err" | LC_ALL=C grep -q '[[:cntrl:]]'
    harmless=$?
}

for file in "$hostile"/unsafe/*; do
    for command in info stats check; do
        run "$command" "$file"
        [ $code -eq 4 ] && [ $harmless -eq 0 ] && [ ! -s "$work/out" ]
        count "$command of unsafe/$(basename "$file"): exit code $code" $?
    done
done
for file in "$hostile"/limits/*; do
    run info "$file"
    { [ $code -eq 3 ] || [ $code -eq 5 ] || [ $code -eq 7 ]; } && [ $harmless -eq 0 ]
    count "limits/$(basename "$file"): exit code $code" $?
done

# Whatever a report says of them, it says it: 0, or 1 and 3 for what it does not find.
for file in "$hostile"/numbers/*; do
    for command in info check top peak live oom frag churn leaks 'leaks --json' stats trace \
        'flame -o -' segments memory 'view -o -' replay 'export --to json -o -' \
        'export --to perfetto -o -' 'export --to speedscope -o -' 'export --to csv -o -'; do
        # shellcheck disable=SC2086
        (cd "$work" && timeout 60 "$tarn" $command "$file" >out 2>err </dev/null)
        code=$?
        [ $code -le 7 ] && ! grep -q 'runtime error' "$work/err"
        count "$command of numbers/$(basename "$file"): exit code $code" $?
    done
    timeout 60 "$tarn" ranks --json "$file" "$file" "$file" >"$work/out" 2>"$work/err" &&
        ! grep -q 'runtime error' "$work/err"
    count "ranks of numbers/$(basename "$file") three times" $?
    timeout 60 "$tarn" trim -f --time 0..1 "$file" "$work/trimmed.pickle" >"$work/out" 2>"$work/err"
    [ $? -le 7 ] && ! grep -q 'runtime error' "$work/err"
    count "trim of numbers/$(basename "$file")" $?
done

count_end && [ "$passed" -gt 100 ]
