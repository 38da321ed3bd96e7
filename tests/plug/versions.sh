#!/bin/sh
# SPDX-License-Identifier: MIT
# versions.sh BUILD CUDA_INCLUDE TORCH_INCLUDE...: compiles torch's allocator class against the
# headers of each of these versions of torch, with all warnings as errors; fails where it leaves a
# virtual function to torch that is not listed below; and runs the tests of the class on simulated
# devices. TORCH_INCLUDE is torch/include of an installed torch, of a CPU build too, or what
# headers.sh made. BUILD is a build folder with libtarn.so.
set -eu

if [ $# -lt 3 ]; then
    echo "usage: tests/plug/versions.sh BUILD CUDA_INCLUDE TORCH_INCLUDE..." >&2
    exit 2
fi
build=$(cd "$1" && pwd)
cuda=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
compiler="${CMAKE_CXX_COMPILER_LAUNCHER:-} ${CXX:-g++}" # words

# torch's own: the deleter's context is the pointer; record_stream by way of ours; cudaMemGetInfo
left_to_torch='c10::Allocator::is_simple_data_ptr$
c10::cuda::CUDACachingAllocator::CUDAAllocator::recordStream$
c10::cuda::CUDACachingAllocator::CUDAAllocator::getMemoryInfo$'

# version FOLDER: as "2.14.1"
version() {
    header=$1/torch/headeronly/version.h
    [ -f "$header" ] || header=$1/torch/version.h
    [ -f "$header" ] || header=$1/torch/csrc/api/include/torch/version.h
    for part in MAJOR MINOR PATCH; do
        sed -n "s/^#define TORCH_VERSION_$part *//p" "$header"
    done | paste -s -d .
}

# compile OUTPUT SOURCE [flag ...]
compile() {
    output=$1
    source=$2
    shift 2
    # shellcheck disable=SC2086
    $compiler -std=c++$standard -O1 -fPIC -Wall -Wextra -Wpedantic -Woverloaded-virtual -Werror \
        -I"$root" -I"$root/include" -I"$root/tests" \
        -isystem "$torch" -isystem "$torch/torch/csrc/api/include" -isystem "$overlay" \
        -isystem "$cuda" "$@" -c "$root/$source" -o "$output"
}

# A CPU build has no header that says how CUDA's part was built.
overlay=$scratch/overlay
mkdir -p "$overlay/c10/cuda/impl"
printf '#pragma once\n#define C10_CUDA_BUILD_SHARED_LIBS\n' \
    >"$overlay/c10/cuda/impl/cuda_cmake_macros.h"

# check FOLDER: prints what is wrong
check() {
    torch=$1
    number=$(version "$torch")
    minor=${number#*.}
    minor=${minor%%.*}
    standard=17
    [ "$minor" -lt 12 ] || standard=20 # as python/tarn/torch/_class.py
    out=$scratch/$number
    mkdir -p "$out"
    compile "$out/history.o" plug/pytorch/history.cpp || return 1
    compile "$out/class.o" plug/pytorch/torch_allocator.cpp || return 1
    if "${CXX:-g++}" --version | grep -q 'Free Software'; then # clang has no such option
        compile "$out/listed.o" plug/pytorch/torch_allocator.cpp \
            "-fdump-lang-class=$out/classes" || return 1
        sed -n '/^Vtable for tarn_torch::.*Allocator$/,/^$/p' "$out/classes" >"$out/slots"
        if ! grep -q 'tarn_torch::.*::raw_alloc$' "$out/slots"; then
            echo "the table of the class's virtual functions was not found"
            return 1
        fi
        if grep ')c10::' "$out/slots" | grep -v "$left_to_torch"; then
            echo "these are left to torch"
            return 1
        fi
    fi
    for name in test_class test_class_pool; do
        compile "$out/$name.o" "tests/plug/$name.cpp" || return 1
    done
    compile "$out/torch_stub.o" tests/plug/torch_stub.cpp -Wno-unused-parameter || return 1
    "${CXX:-g++}" -o "$out/test" "$out/history.o" "$out/class.o" "$out/test_class.o" \
        "$out/test_class_pool.o" "$out/torch_stub.o" "$build/libtarn.so" \
        "-Wl,-rpath,$build" -pthread || return 1
    if ! "$out/test" >"$out/report" ||
        ! TARN_ALLOC_CONF=backend:cudaMallocAsync "$out/test" async >"$out/report_async"; then
        cat "$out/report" "$out/report_async"
        return 1
    fi
}

passed=0
failed=0
for folder in "$@"; do
    if check "$folder"; then
        passed=$((passed + 1))
        echo "torch $number: C++$standard, $(tail -1 "$out/report")"
    else
        failed=$((failed + 1))
        echo "failed: torch ${number:-in $folder}"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
