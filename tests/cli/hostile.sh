#!/bin/sh
# SPDX-License-Identifier: MIT
# hostile.sh PROGRAM HOSTILE: files that were made to do harm. Those of HOSTILE/unsafe ask to import
# or call something: exit code 4, nothing on standard output, and one line on standard error that
# shows no control character of theirs. Those of HOSTILE/limits are damaged or want too much: exit
# code 3, 5 or 7. Those of HOSTILE/replay are whole, and say of memory what no allocator can have
# had: they replay under any settings, every invariant checked.
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

# Ends as it should and says nothing of a mistake.
replays() { # CODE ARGUMENTS...
    wanted=$1
    shift
    timeout 60 "$tarn" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ $code -eq "$wanted" ]
    count "$*: exit code $code" $?
}
for file in "$hostile"/replay/*; do
    replays 0 replay "$file" --check
    for size in 12 20 40 100; do
        replays 0 replay "$file" --check \
            --conf "expandable_segments:True,large_segment_size_mb:$size"
    done
    for size in 11 13; do
        replays 0 replay "$file" --check --conf "large_segment_size_mb:$size"
        replays 2 replay "$file" \
            --conf "expandable_segments:True,large_segment_size_mb:$size"
    done
    replays 0 tune "$file"
    replays 0 fit "$file"
done

count_end && [ "$passed" -gt 100 ]
