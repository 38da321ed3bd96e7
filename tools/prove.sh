#!/bin/sh
# SPDX-License-Identifier: MIT
# prove.sh [FILE...]: proves the contracts of tests/proofs with Frama-C's WP (tools/setup.sh
# proofs).
#
# A file there describes functions of src/ in ACSL, before or after it includes them; exactly those
# functions are proved, with what could go wrong in C (overflow, shifts, bounds) besides. Contracts
# that other files use as well are in its header of the same name. One under a comment that begins
# with "Assumed" is not proved. First Z3 proves the facts that all proofs use (facts.smt2). One line
# per file: functions, goals. Ends with N passed, N failed, N skipped, which counts functions; exit
# status 1 if a goal is not proved.
#
# prove.sh --wrong: each function of tests/proofs/wrong.tsv gets a wrong body, and its proof has to
# fail: what accepts any body proves nothing. Counts bodies.
set -eu
cd "$(dirname "$0")/.."

if ! command -v frama-c >/dev/null 2>&1; then
    echo "skip: proofs need frama-c (package frama-c-base)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
export WHY3CONFIG="$work/why3.conf" # the provers that are here, whatever the user's file says
why3 config detect >/dev/null 2>&1 || true
provers=$(why3 config list-provers 2>/dev/null |
    awk 'tolower($1) ~ /^(z3|cvc4)$/ { print tolower($1) }' | sort -u | paste -sd, -)
flags="-include tests/proofs/prelude.h -Itests/proofs -Iinclude -D_POSIX_C_SOURCE=200809L"
flags="$flags -U__SSE2__"
seconds=20
passed=0
failed=0

functions() { # FILE: those with a contract: the first prototype after each
    if [ -f "${1%.c}.h" ]; then cat "${1%.c}.h" "$1"; else cat "$1"; fi |
        awk '/^\/\* Assumed/ { assumed = 1 }
            /^\/\*@/ { contract = 1 }
            contract && /^[a-z].*\(/ {
                if (!assumed) { sub(/\(.*/, ""); sub(/.*[ *]/, ""); print }
                contract = assumed = 0
            }'
}

prove() { # FILE FUNCTION[,FUNCTION...] SRC: goals proved and all
    frama-c -machdep gcc_x86_64 -cpp-extra-args="-I$3 $flags" \
        -wp -wp-rte -wp-fct "$2" -wp-prover "${provers:-z3,cvc4}" -wp-timeout $seconds \
        -wp-par "${JOBS:-$(nproc)}" -wp-cache none "$1" >"$work/out" 2>&1 || true
    sed -n 's/^\[wp\] Proved goals: *\([0-9]*\) *\/ *\([0-9]*\).*/\1 \2/p' "$work/out"
}

prove_facts() {
    z3 -T:600 tests/proofs/facts.smt2 >"$work/facts" 2>&1 || true
    facts=$(cat tests/proofs/*.[ch] | grep -c '^  @   axiom ')
    if [ "$(grep -c '^unsat$' "$work/facts")" -ne "$facts" ] ||
        [ "$(wc -l <"$work/facts")" -ne $((2 * facts)) ]; then
        failed=$((failed + 1))
        echo "tests/proofs/facts.smt2: FAILED: not $facts facts"
        cat "$work/facts"
    fi
}

try_wrong() { # FILE FUNCTION SOURCE OLD NEW
    rm -rf "$work/src"
    cp -r src "$work/src"
    OLD=$4 NEW=$5 awk '
        ENVIRON["OLD"] != "" && !done && (at = index($0, ENVIRON["OLD"])) {
            $0 = substr($0, 1, at - 1) ENVIRON["NEW"] substr($0, at + length(ENVIRON["OLD"]))
            done = 1
        }
        { print }' "src/$3" >"$work/src/$3"
    goals=$(prove "tests/proofs/$1" "$2" "$work/src")
    if cmp -s "src/$3" "$work/src/$3" || [ -z "$goals" ]; then
        failed=$((failed + 1))
        echo "$2: FAILED: no proof was tried with \"$5\""
    elif [ "${goals% *}" = "${goals#* }" ]; then
        failed=$((failed + 1))
        echo "$2: FAILED: accepts \"$5\""
    else
        passed=$((passed + 1))
    fi
}

if [ "${1:-}" = --wrong ]; then
    seconds=5 # what is right takes less than one
    tab=$(printf '\t')
    while IFS=$tab read -r file function source old new; do
        case $file in '#'*) ;; *) try_wrong "$file" "$function" "$source" "$old" "$new" ;; esac
    done <tests/proofs/wrong.tsv
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ]
    exit
fi

[ $# -gt 0 ] || set -- tests/proofs/*.c
prove_facts
for file in "$@"; do
    names=$(functions "$file" | paste -sd, -)
    count=$(functions "$file" | wc -l)
    goals=$(prove "$file" "$names" src)
    case $goals in
    "${goals% *} ${goals% *}")
        passed=$((passed + count))
        echo "$file: $count functions, ${goals% *} goals proved"
        ;;
    *)
        failed=$((failed + count))
        echo "$file: FAILED: $count functions, goals proved and all: ${goals:-none}"
        grep -E 'Error|Failure|^\[wp\] \[(Failed|Unknown|Timeout|Unsuccess)' "$work/out" || true
        ;;
    esac
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
