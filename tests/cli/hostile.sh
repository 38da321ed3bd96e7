#!/bin/sh
# SPDX-License-Identifier: MIT
# hostile.sh PROGRAM HOSTILE: files that were made to do harm. Those of HOSTILE/unsafe ask to import
# or call something: exit code 4, nothing on standard output, and one line on standard error that
# shows no control character of theirs. Those of HOSTILE/limits are damaged or want too much: exit
# code 3, 5 or 7. Those of HOSTILE/replay are whole, and say of memory what no allocator can have
# had: they replay under any settings, every invariant checked. Those of HOSTILE/odd are snapshots
# with something odd: exit code 3 with --strict, and said with -v. Those of HOSTILE/numbers have
# sizes and times at the ends of their types: every report takes them, and a sanitizer sees what
# overflows. Nor does anything that a terminal obeys come back from names of files, options and
# commands.
set -u

tarn=$1
hostile=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

# Leaves code, and whether nothing but one harmless line was said.
run() { # COMMAND ARGUMENT...
    timeout 60 "$tarn" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ "$(wc -l <"$work/err")" -eq 1 ] && is_harmless "$work/err"
    harmless=$?
}

# Controls of 7 and of 8 bits, marks of direction and line separators, and what is no UTF-8.
c1=$(printf '\302[\200-\237]')
marks=$(printf '\342\200[\216\217\250-\256]\\|\342\201[\246-\251]\\|\330\234')
is_harmless() { # FILE
    ! LC_ALL=C tr -d '\n' <"$1" | LC_ALL=C grep -q "[[:cntrl:]]\|$c1\|$marks" &&
        iconv -f UTF-8 -t UTF-8 "$1" >"$work/utf8" 2>&1
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

for file in "$hostile"/odd/*; do
    run info --strict "$file"
    [ $code -eq 3 ] && [ $harmless -eq 0 ] && [ ! -s "$work/out" ]
    count "odd/$(basename "$file") with --strict: exit code $code" $?
    run info -v "$file"
    [ $code -eq 0 ] && is_harmless "$work/err" && is_harmless "$work/out" && [ -s "$work/err" ]
    count "odd/$(basename "$file") with -v: exit code $code" $?
done

# An escape, C1 raw and in UTF-8, a mark of direction, a separator, and half a character.
text=$(printf 'a\033[31m\233\302\233\342\200\256\342\200\250\303')
said() { # EXIT_CODE COMMAND ARGUMENT...
    wanted=$1
    shift
    run "$@"
    [ $code -eq "$wanted" ] && [ $harmless -eq 0 ] && [ ! -s "$work/out" ] &&
        grep -q 'a.x1b\[31m' "$work/err"
    count "$1 with a text that a terminal would obey: exit code $code" $?
}
snapshot=$hostile/../snapshots/tiny.pickle.gz
long=$(printf '%060d' 0 | tr 0 a) # with the next one a character is cut
said 2 "$text"
said 2 info "--$text"
said 2 info --color "$text" "$snapshot"
said 2 info "$snapshot" "$text"
said 2 top --by stack --rows "$text" "$snapshot"
said 2 top --min-size "$text" "$snapshot"
said 2 top --min-share "$text" "$snapshot"
said 2 top --match "($text" "$snapshot"
said 2 top --where "size > '$text" "$snapshot"
said 2 top --at "$text" "$snapshot"
said 2 top --annotation "$text" "$snapshot"
said 2 diff --to "$text" "$snapshot" "$snapshot"
said 2 flame --from "$text" "$snapshot"
said 2 trim --events "$text" "$snapshot" -
said 2 explain "$text"
said 2 help "$text"
said 6 info "$text"
said 6 top --rules "$text" "$snapshot"
said 6 info "$snapshot" -o "$work/$text/x"
said 6 verify "$text"
said 6 track "$text"
said 6 profile "$text" -
for most in 56 57 58 59; do
    run info --color "$(printf %s "$long" | cut -c "1-$most")$(printf '\360\237\224\245')"
    [ $code -eq 2 ] && [ $harmless -eq 0 ]
    count "no character is cut at $most" $?
done

run config "$text"
[ $code -eq 2 ] && [ $harmless -eq 0 ]
count "settings that a terminal would obey: exit code $code" $?
run replay --measured "$text" "$snapshot"
[ $code -eq 6 ] && [ $harmless -eq 0 ]
count "replay --measured with such a name: exit code $code" $?
cp "$snapshot" "$work/$text.gz"
for command in info 'replay' 'fit' 'scale --factor batch=2' 'tune' 'ranks'; do
    # shellcheck disable=SC2086
    set -- $command
    run "$@" "$work/$text.gz"
    is_harmless "$work/out" && is_harmless "$work/err" && [ -s "$work/out" ]
    count "$command of a file with such a name: exit code $code" $?
    run "$@" --json "$work/$text.gz"
    is_harmless "$work/out" && is_harmless "$work/err" && [ -s "$work/out" ]
    count "$command --json of a file with such a name: exit code $code" $?
done

# Whatever a report says of them, it says it: 0, or 1 and 3 for what it does not find.
for file in "$hostile"/numbers/*; do
    for command in summary info check top peak live oom frag churn leaks 'leaks --json' steps tree \
        stats trace 'flame -o -' segments memory 'view -o -' replay 'export --to json -o -' \
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
    timeout 60 "$tarn" view --ranks -o - "$file" "$file" "$file" >"$work/out" 2>"$work/err" &&
        ! grep -q 'runtime error' "$work/err"
    count "view --ranks of numbers/$(basename "$file") three times" $?
    timeout 60 "$tarn" trim -f --time 0..1 "$file" "$work/trimmed.pickle" >"$work/out" 2>"$work/err"
    [ $? -le 7 ] && ! grep -q 'runtime error' "$work/err"
    count "trim of numbers/$(basename "$file")" $?
done

count_end && [ "$passed" -gt 100 ]
