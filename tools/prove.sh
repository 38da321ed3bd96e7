#!/bin/sh
# SPDX-License-Identifier: MIT
# prove.sh [FILE...]: proves the contracts of tests/proofs with Frama-C's WP (tools/setup.sh
# proofs).
#
# A file there describes functions of src/ in ACSL, before or after it includes them; exactly those
# functions are proved, with what could go wrong in C (overflow, shifts, bounds) besides. One line
# per file: functions, goals. Ends with N passed, N failed, N skipped, which counts functions; exit
# status 1 if a goal is not proved.
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
[ $# -gt 0 ] || set -- tests/proofs/*.c
flags="-include tests/proofs/prelude.h -Isrc -Iinclude -D_POSIX_C_SOURCE=200809L -U__SSE2__"
passed=0
failed=0

functions() { # FILE: those with a contract: the first prototype after each
    awk '/^\/\*@/ { contract = 1 }
        contract && /^[a-z].*\(/ { sub(/\(.*/, ""); sub(/.*[ *]/, ""); print; contract = 0 }' "$1"
}

for file in "$@"; do
    names=$(functions "$file" | paste -sd, -)
    count=$(functions "$file" | wc -l)
    frama-c -machdep gcc_x86_64 -cpp-extra-args="$flags" \
        -wp -wp-rte -wp-fct "$names" -wp-prover "${provers:-z3,cvc4}" -wp-timeout 20 \
        -wp-par "${JOBS:-$(nproc)}" -wp-cache none "$file" >"$work/out" 2>&1 || true
    goals=$(sed -n 's/^\[wp\] Proved goals: *\([0-9]*\) *\/ *\([0-9]*\).*/\1 \2/p' "$work/out")
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
