#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh LIBRARY_FOLDER WORK_FOLDER: tarn/tarn.hpp compiled as C++17 and C++20, by g++ and clang++,
# with and without exceptions and RTTI, without a warning, and run on the simulated device; and the
# adaptor for TensorRT. Over the real interfaces of CCCL and TensorRT where their headers are: in
# CUDA_INCLUDE (/usr/local/cuda/include) and TENSORRT_INCLUDE.
set -u

library=$1
work=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
passed=0
failed=0
skipped=0

rm -rf "$work"
mkdir -p "$work"

try() { # TEST NAME COMPILER FLAG...
    test=$1
    name=$1-$2
    compiler=$3
    shift 3
    if ! command -v "$compiler" >/dev/null 2>&1; then
        echo "skip: $name: no $compiler"
        skipped=$((skipped + 1))
    elif "$compiler" "$@" -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Werror \
        -I"$root/include" -I"$root" "$root/tests/cpp/$test.cpp" -o "$work/$name" -L"$library" \
        -Wl,-rpath,"$library" -ltarn && "$work/$name"; then
        passed=$((passed + 1))
    else
        echo "FAILED: $name"
        failed=$((failed + 1))
    fi
}

cuda=${CUDA_INCLUDE:-/usr/local/cuda/include}
tensorrt=${TENSORRT_INCLUDE:-}

try_real() { # COMPILER
    if [ -e "$cuda/cccl/cuda/memory_resource" ]; then
        try test_cccl "$1" "$1" -std=c++17 -isystem "$cuda/cccl" -isystem "$cuda"
    else
        echo "skip: test_cccl-$1: no headers of CCCL in $cuda"
        skipped=$((skipped + 1))
    fi
    if [ -e "$tensorrt/NvInferRuntime.h" ] && [ -e "$cuda/cuda_runtime_api.h" ]; then
        try test_tensorrt "$1-real" "$1" -std=c++17 -DREAL_TENSORRT -isystem "$tensorrt" \
            -isystem "$cuda"
    else
        echo "skip: test_tensorrt-$1-real: no headers of TensorRT in TENSORRT_INCLUDE"
        skipped=$((skipped + 1))
    fi
}

for compiler in g++ clang++; do
    for standard in 17 20; do
        try test_hpp "$compiler-$standard" "$compiler" "-std=c++$standard"
        try test_hpp "$compiler-$standard-plain" "$compiler" "-std=c++$standard" -fno-exceptions \
            -fno-rtti
    done
    try test_tensorrt "$compiler" "$compiler" -std=c++17
    try_real "$compiler"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
