#!/bin/sh
# SPDX-License-Identifier: MIT
# coverage.sh [ctest option]...: which lines and branches of src/ the tests reach.
#
# Builds the preset `coverage` with clang, runs the tests, and prints one line per file, and
# branches by folder (coverage_branches.py). Fails where a test does, or where all tests leave a
# branch out. build/coverage/html has the sources with counts, build/coverage/branches.txt the
# branches that were not taken. Needs llvm-profdata, llvm-cov and Python.
set -eu
cd "$(dirname "$0")/.."

tool() { # NAME: with or without the version that Debian puts behind it
    command -v "$1-14" || command -v "$1" || {
        echo "coverage.sh needs $1 (package llvm-14)" >&2
        exit 1
    }
}

profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)
build=build/coverage
[ -f "$build/build.ninja" ] || cmake --preset coverage >/dev/null
cmake --build --preset coverage -j "${JOBS:-$(nproc)}" >"$build/build.log"
rm -rf "$build/profiles"
mkdir -p "$build/profiles"
LLVM_PROFILE_FILE=$PWD/$build/profiles/%m.profraw
export LLVM_PROFILE_FILE
status=0
tools/run_tests.sh "$build" -j "${JOBS:-$(nproc)}" "$@" >"$build/tests.log" || status=1
tail -n $((1 + 40 * status)) "$build/tests.log" # what failed stands before the counts
"$profdata" merge -sparse "$build"/profiles/*.profraw -o "$build/tests.profdata"

objects=$(find "$build/tests" -maxdepth 1 -type f -perm -u+x | sed 's/^/-object /')
# shellcheck disable=SC2086 # a list of options
"$cov" report "$build/cli/tarn" $objects -instr-profile="$build/tests.profdata" src
# shellcheck disable=SC2086
"$cov" show "$build/cli/tarn" $objects -instr-profile="$build/tests.profdata" -format=html \
    -output-dir="$build/html" -show-branches=count src >/dev/null
# shellcheck disable=SC2086
"$cov" export -skip-expansions "$build/cli/tarn" $objects -instr-profile="$build/tests.profdata" \
    >"$build/branches.json"
python3 tools/coverage_branches.py "$build/branches.json" . --list src >"$build/branches.txt"
grep '^|' "$build/branches.txt"
if [ $# -eq 0 ] && grep ': never ' "$build/branches.txt"; then
    echo "coverage.sh: these branches were not taken"
    status=1
fi
exit $status
