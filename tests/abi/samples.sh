#!/bin/sh
# SPDX-License-Identifier: MIT
# samples.sh EXPORTS_SH: exports.sh must accept a library that keeps its headers' word and reject
# one that exports more or less. Needs a C compiler ($CC or cc).
set -eu

exports=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tarn"
passed=0
failed=0

cat >"$work/tarn/a.h" <<'HEADER'
#define TARN_API __attribute__((visibility("default")))
/* TARN_API int tarn_in_a_comment(void); */
TARN_API int tarn_first(void);
TARN_API int
tarn_second(int (*callback)(void));
HEADER

check() { # NAME WANTED_LAST_LINE SOURCE
    echo "$3" | "${CC:-cc}" -shared -fPIC -x c - -o "$work/lib.so"
    last=$("$exports" "$work/lib.so" "$work/tarn" | tail -n 1) || true
    if [ "$last" = "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1: got '$last', expected '$2'"
    fi
}

both='int tarn_first(void) { return 1; } int tarn_second(int (*f)(void)) { return f(); }'
check "as declared" "2 passed, 0 failed, 0 skipped" "$both"
check "one too many" "1 passed, 1 failed, 0 skipped" "$both int tarn_third;"
check "foreign name" "1 passed, 1 failed, 0 skipped" "$both int helper(void) { return 1; }"
check "one missing" "1 passed, 1 failed, 0 skipped" "int tarn_first(void) { return 1; }"
check "other half" "1 passed, 0 failed, 1 skipped" "static int unused; int *tarn(void);"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
