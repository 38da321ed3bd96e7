#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh LIBRARY_FOLDER WORK_FOLDER: tarn/tarn.hpp compiled as C++17 and C++20, by g++ and clang++,
# with and without exceptions and RTTI, without a warning, and run on the simulated device.
set -u

library=$1
work=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
passed=0
failed=0
skipped=0

rm -rf "$work"
mkdir -p "$work"

try() { # NAME COMPILER FLAG...
    name=$1
    compiler=$2
    shift 2
    if ! command -v "$compiler" >/dev/null 2>&1; then
        echo "skip: $name: no $compiler"
        skipped=$((skipped + 1))
    elif "$compiler" "$@" -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Werror \
        -I"$root/include" "$root/tests/cpp/test_hpp.cpp" -o "$work/$name" -L"$library" \
        -Wl,-rpath,"$library" -ltarn && "$work/$name"; then
        passed=$((passed + 1))
    else
        echo "FAILED: $name"
        failed=$((failed + 1))
    fi
}

for compiler in g++ clang++; do
    for standard in 17 20; do
        try "$compiler-$standard" "$compiler" "-std=c++$standard"
        try "$compiler-$standard-plain" "$compiler" "-std=c++$standard" -fno-exceptions -fno-rtti
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
