#!/bin/sh
# SPDX-License-Identifier: MIT
# What src/device declares of CUDA is what a real cuda.h says (cuda_abi.cpp). Skipped where there is
# no cuda.h of CUDA 12.3 or newer, which is the oldest that has all of it, or no C++ compiler.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    echo "skip: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

find_cuda() { # prints the folder that has cuda.h
    for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda; do
        if [ -n "$folder" ] && [ -f "$folder/include/cuda.h" ]; then
            echo "$folder/include"
            return
        fi
    done
}

find_compiler() {
    for compiler in "${CXX:-}" c++ g++ clang++; do
        if [ -n "$compiler" ] && command -v "$compiler" >/dev/null 2>&1; then
            echo "$compiler"
            return
        fi
    done
}

check() { # [option]...
    "$compiler" -std=c++17 -fsyntax-only -isystem "$cuda" -I"$here/../../src" \
        -I"$here/../../include" "$@" "$here/cuda_abi.cpp" >"$work/log" 2>&1
}

cuda=$(find_cuda)
[ -n "$cuda" ] || skip "no cuda.h (CUDA_HOME, /usr/local/cuda)"
compiler=$(find_compiler)
[ -n "$compiler" ] || skip "no C++ compiler"
version=$(awk '/^#define CUDA_VERSION / { print $3 }' "$cuda/cuda.h")
[ "${version:-0}" -ge 12030 ] || skip "$cuda/cuda.h is of CUDA version ${version:-unknown}"

if ! check; then
    cat "$work/log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
if check -DBREAK_ABI; then
    echo "a wrong declaration is not noticed"
    echo "1 passed, 1 failed, 0 skipped"
    exit 1
fi
echo "2 passed, 0 failed, 0 skipped"
