#!/bin/sh
# SPDX-License-Identifier: MIT
# bombs.sh PROGRAM MAKE_BOMB: small files that stand for something far too large. Each is refused
# with exit code 7 and one line, packed, and by a pipe, within 1 GiB of address space.
set -u

tarn=$1
make_bomb=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

# The sanitizers' address space is larger than any bound, and slower.
memory=${TARN_BOMB_KIB:-1048576}

# Reads standard input; an endless one must not take the machine with it.
run() { # COMMAND [ARGUMENT...]
    (
        # shellcheck disable=SC3045 # which every shell of Debian and Ubuntu has
        [ "$memory" = unlimited ] || ulimit -v "$memory"
        # shellcheck disable=SC3045
        ulimit -t 60
        "$tarn" "$@" >"$work/out" 2>"$work/err"
    )
    code=$?
    [ $code -eq 7 ] && [ "$(wc -l <"$work/err")" -eq 1 ] && [ ! -s "$work/out" ] &&
        [ ! -e "$work/made.pickle" ]
}

for kind in $("$make_bomb"); do
    "$make_bomb" "$kind" | gzip -1 >"$work/bomb.gz"
    case $kind in
    profile*) commands=profile ;;
    track*) commands=track ;;
    verify*) commands=verify ;;
    *) commands='info check leaks' ;;
    esac
    for command in $commands; do
        [ "$command" = profile ] && output=$work/made.pickle || output=
        # shellcheck disable=SC2086
        run "$command" "$work/bomb.gz" $output </dev/null
        count "$command of a bomb, $kind: exit code $code" $?
    done
    [ "$commands" = verify ] && continue
    # shellcheck disable=SC2086
    run "$command" - $output <"$work/bomb.gz"
    count "$command of a bomb by a pipe, $kind: exit code $code" $?
done

count_end && [ "$passed" -gt 80 ]
