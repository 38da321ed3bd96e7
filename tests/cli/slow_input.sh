#!/bin/sh
# SPDX-License-Identifier: MIT
# slow_input.sh PROGRAM SNAPSHOT: long reading is told on a terminal, in one line that goes away,
# and nowhere else. Input comes through a named pipe that pauses for longer than work stays untold.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

gunzip -c "$2" >"$work/plain"
mkfifo "$work/pipe"

# $work/open is there once the program has opened the pipe.
feed() { # PAUSE
    rm -f "$work/open"
    {
        : >"$work/open"
        head -c 1000 "$work/plain"
        sleep "$1"
        tail -c +1001 "$work/plain"
    } >"$work/pipe" &
    feeder=$!
}

# Options come after the pause; what the program says is in $work/said.
told() { # PAUSE [OPTION...]
    feed "$1"
    shift
    "$tarn" check "$work/pipe" "$@" >"$work/out" 2>"$work/said"
    code=$?
    wait "$feeder"
    return $code
}

told 0.6
count "a slow file is read" $?
[ ! -s "$work/said" ]
count "nothing is told where stderr is a file" $?

told 0.6 --progress=always
tr '\r' '\n' <"$work/said" | grep -q '^reading pipe: [0-9.]* KiB, [0-9]* MB/s'
count "--progress=always tells" $?
# The last that is written is blanks and a return to the left.
[ "$(tail -c 1 "$work/said")" = "$(printf '\r')" ] &&
    [ "$(tr -cd '\n' <"$work/said" | wc -c)" -eq 0 ]
count "the line is erased" $?

"$tarn" check "$work/plain" --progress=always >"$work/out" 2>"$work/said"
[ ! -s "$work/said" ]
count "what is quick is not told" $?

feed 0.8
"$tarn" check "$work/pipe" >"$work/out" 2>"$work/said" &
reader=$!
while [ ! -e "$work/open" ]; do
    sleep 0.05
done
kill -USR1 "$reader"
wait "$reader"
count "a question does not end the program" $?
wait "$feeder"
grep -q '^tarn: reading pipe: ' "$work/said"
count "it is answered" $?

feed 0.8
"$tarn" check "$work/pipe" >"$work/out" 2>"$work/said" &
reader=$!
while [ ! -e "$work/open" ]; do
    sleep 0.05
done
kill -INT "$reader"
wait "$reader"
[ $? -eq 130 ] && [ ! -s "$work/said" ]
count "an interrupted program ends with 130 and says nothing" $?
wait "$feeder"

on_terminal() { # WORDS: the program's, run by a shell; what the terminal got is in $work/said
    TERM=xterm script -qec "$1" /dev/null </dev/null 2>/dev/null | tr '\r' '\n' >"$work/said"
}

on_terminal 'echo yes'
if grep -q yes "$work/said"; then
    feed 0.6
    on_terminal "'$tarn' check '$work/pipe' >/dev/null"
    wait "$feeder"
    grep -q '^reading pipe: ' "$work/said"
    count "a terminal is told" $?

    feed 0.6
    on_terminal "'$tarn' check -q '$work/pipe' >/dev/null"
    wait "$feeder"
    ! grep -q 'reading' "$work/said"
    count "-q tells nothing" $?

    feed 0.6
    on_terminal "'$tarn' check --progress never '$work/pipe' >/dev/null"
    wait "$feeder"
    ! grep -q 'reading' "$work/said"
    count "--progress=never tells nothing" $?
else
    skip "a terminal: there is no script, or no pseudo-terminal to be had"
fi

count_end
