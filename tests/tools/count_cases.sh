#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/run_tests.sh on test programs that only print what cmocka, a shell suite or a dying program
# would print: the cases that it counts, its exit status, and the reasons that it shows.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
run_tests=$here/../../tools/run_tests.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# A build folder with one test; its script is standard input.
fake() {
    rm -rf "$work/build"
    mkdir "$work/build"
    cat >"$work/build/fake.sh"
    cat >"$work/build/CTestTestfile.cmake" <<'CMAKE'
add_test(fake "sh" "fake.sh")
set_tests_properties(fake PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 2)
CMAKE
}

expect() { # NAME WANTED_STATUS WANTED_LAST_LINE [TEXT_IN_OUTPUT]
    status=0
    "$run_tests" "$work/build" >"$work/output" 2>&1 || status=$?
    last=$(tail -n 1 "$work/output")
    if [ "$status" -eq "$2" ] && [ "$last" = "$3" ] && grep -qF -- "${4:-}" "$work/output" &&
        [ "$(cat "$work/build/test_counts")" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1: exit status $status (expected $2), last line '$last' (expected '$3')"
        sed 's/^/    /' "$work/output"
    fi
}

fake <<'SH'
echo "[  PASSED  ] 3 test(s)." >&2
SH
expect "cmocka, on the error output" 0 "3 passed, 0 failed, 0 skipped"

fake <<'SH'
echo "[       OK ] a"
echo "[  PASSED  ] 3 test(s)."
echo "[  PASSED  ] second group: 2 test(s)."
SH
expect "cmocka, two groups" 0 "5 passed, 0 failed, 0 skipped"

fake <<'SH'
echo "[==========] 4 test(s) run.[  PASSED  ] 2 test(s)."
echo "[  SKIPPED ] 1 test(s), listed below:"
echo "[  SKIPPED ] needs_a_gpu"
echo "[  FAILED  ] 1 test(s), listed below:"
echo "[  FAILED  ] adds_up"
echo
echo " 1 FAILED TEST(S)"
exit 1
SH
expect "cmocka, failed and skipped" 1 "2 passed, 1 failed, 1 skipped" "    needs_a_gpu"

fake <<'SH'
echo "[  PASSED  ] 2 test(s)."
echo "[  FAILED  ] 1 test(s), listed below:"
echo " 2 FAILED TEST(S)"
exit 2
SH
expect "cmocka, set-up failed" 1 "2 passed, 2 failed, 0 skipped"

fake <<'SH'
echo "[       OK ] a"
echo "[       OK ] b"
kill -ABRT $$
SH
expect "died among its cases" 1 "2 passed, 1 failed, 0 skipped" "Subprocess aborted"

fake <<'SH'
echo "[  PASSED  ] 2 test(s)."
kill -SEGV $$
SH
expect "died after its cases" 1 "2 passed, 1 failed, 0 skipped" "SEGFAULT"

fake <<'SH'
exec sleep 20
SH
expect "time-out" 1 "0 passed, 1 failed, 0 skipped" "(Timeout)"

fake <<'SH'
echo "1 passed, 1 failed, 0 skipped"
echo "skip: no device"
echo "7 passed, 0 failed, 1 skipped"
SH
expect "shell suite, last line" 0 "7 passed, 0 failed, 1 skipped" "    skip: no device"

fake <<'SH'
echo "case_one: expected 3"
echo "1 passed, 2 failed, 0 skipped"
exit 1
SH
expect "shell suite, failed" 1 "1 passed, 2 failed, 0 skipped" "    case_one: expected 3"

fake <<'SH'
echo "1 passed, 2 failed, 0 skipped"
SH
expect "failed cases and exit status 0" 1 "1 passed, 2 failed, 0 skipped"

fake <<'SH'
printf 'no end of line'
SH
expect "nothing to count, passed" 0 "1 passed, 0 failed, 0 skipped"

fake <<'SH'
echo "skip: no GPU here"
exit 77
SH
expect "skipped as a whole" 1 "0 passed, 0 failed, 1 skipped" "    skip: no GPU here"

fake </dev/null
echo 'add_test(absent "/nonexistent/program")' >"$work/build/CTestTestfile.cmake"
expect "program not there" 1 "0 passed, 1 failed, 0 skipped" "(Not Run)"

fake </dev/null
: >"$work/build/CTestTestfile.cmake"
expect "no tests at all" 1 "0 passed, 0 failed, 0 skipped"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
