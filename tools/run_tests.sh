#!/bin/sh
# SPDX-License-Identifier: MIT
# run_tests.sh BUILD_DIR [ctest option]...: runs the tests of a build and counts their cases.
#
# Shows the output of what failed and the reason of what was skipped, and ends with one line,
#     N passed, N failed, N skipped
# that counts cases, not executables (count_cases.awk has the rules). The same line is left in
# BUILD_DIR/test_counts. Exit status 0: something passed and nothing failed.
set -eu

tools=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 1 ] || [ ! -d "$1" ]; then
    echo "usage: tools/run_tests.sh BUILD_DIR [ctest option]..." >&2
    exit 2
fi
build=$1
shift
console=$build/Testing/Temporary/console.log
log=$build/Testing/Temporary/LastTest.log
mkdir -p "$build/Testing/Temporary"
rm -f "$build/test_counts" "$log"

# Thread sanitizer of gcc 12 cannot place its memory where the kernel randomises addresses widely.
fixed_addresses=""
if grep -qs '^TARN_SANITIZE:STRING=thread' "$build/CMakeCache.txt" &&
    setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed_addresses="setarch $(uname -m) -R"
fi

# CI (TARN_BY_DAY) leaves out the tests that are labelled nightly. So do a sanitizer's builds, which
# make a part of the long searches unless the caller says how much (tests/support/share.h). There
# what is freed is kept from reuse up to 32 MiB, not 256, which is a third faster, since the kernel
# hands out fewer pages.
by_day=${TARN_BY_DAY:-}
if grep -qs '^TARN_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
    export TARN_TEST_SHARE="${TARN_TEST_SHARE:-8}"
    options=quarantine_size_mb=32:malloc_context_size=8:allocator_release_to_os_interval_ms=-1
    export ASAN_OPTIONS="$options${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
    if [ "$TARN_TEST_SHARE" -ne 1 ]; then
        by_day=yes
    fi
fi
if [ -n "$by_day" ]; then
    echo "not by day: the tests labelled nightly (make nightly has them)"
    set -- -LE nightly "$@"
fi

# What the build was configured to leave out: it has no such programs.
left_out=$(sed -n 's/^TARN_TESTS_LEAVE_OUT:STRING=//p' "$build/CMakeCache.txt" 2>/dev/null || :)
[ -z "$left_out" ] || set -- -E "$left_out" "$@"

# The verdict comes from the counts: ctest's own status would only say that some executable failed.
# shellcheck disable=SC2086 # nothing or three words
$fixed_addresses ctest --test-dir "$build" --timeout 600 "$@" 2>&1 | tee "$console" | awk '
    # One line an executable is enough; where ctest looked for a missing one is noise.
    /^ *[0-9]+\/[0-9]+ Test +#/ || /^No tests were found/ || /^CMake Error/ { print; fflush() }'
[ -f "$log" ] || : >"$log"

awk -f "$tools/count_cases.awk" "$console" "$log" | tee "$build/test_report"
tail -n 1 "$build/test_report" >"$build/test_counts"
awk '{ exit !($1 > 0 && $3 == 0) }' "$build/test_counts"
