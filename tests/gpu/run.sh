#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh OUT_FOLDER: builds the tests for GPUs and runs them on this machine's first one, by
# themselves and under compute-sanitizer's memcheck. Writes OUT_FOLDER/PART.log as it goes and
# prints a table last; exit status 1 if a part failed. A part that cannot run says why.
#
# Needs a C compiler, CMake 3.22 and an NVIDIA driver; CUDA's toolkit for compute-sanitizer and
# cuda.h. Nothing else: no network, no repository, no other library. Builds in BUILD, by default
# build/gpu. Without a GPU everything is skipped but the build. The recorded decisions need the
# whole program, which needs more: TARN, by default build/tarn, is skipped where it does not start.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: tests/gpu/run.sh OUT_FOLDER" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${BUILD:-$root/build/gpu}
mkdir -p "$1" "$build"
out=$(cd "$1" && pwd)
table=$out/table.txt
failures=0
: >"$table"

row() { # NAME RESULT SECONDS: a line of the table
    printf '%-12s %-44s %6s s\n' "$1" "$2" "$3" >>"$table"
}

# The line of counts that a log ends with; a tool that watches may say something after it.
counts_of() { # LOG
    grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$1" | tail -n 1
}

part() { # NAME COMMAND...: runs it into NAME.log
    name=$1
    shift
    echo "gpu: $name: $*" >&2
    begun=$(date +%s)
    status=0
    "$@" >"$out/$name.log" 2>&1 </dev/null || status=$?
    result=$(counts_of "$out/$name.log")
    if [ "$status" -ne 0 ]; then
        failures=$((failures + 1))
        result="FAILED, exit status $status${result:+, $result}"
        tail -n 40 "$out/$name.log" >&2
    fi
    row "$name" "${result:-done}" $(($(date +%s) - begun))
    [ "$status" -eq 0 ]
}

skip() { # NAME REASON
    echo "gpu: $1: skip: $2" >&2
    row "$1" "skipped: $2" 0
}

find_tool() { # NAME: prints the path of a program of CUDA's toolkit
    for path in "$(command -v "$1" || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/$1"; do
        if [ -n "$path" ] && [ -x "$path" ]; then
            echo "$path"
            return
        fi
    done
}

# shellcheck disable=SC2317 # called by `part`
build_tests() {
    cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
        cmake --build "$build" -j "$(nproc)"
}

# What goes wrong on purpose (memory running out) is no error here; what is lost or touched without
# being allocated is.
# shellcheck disable=SC2317 # called by `part`
memcheck() { # PROGRAM...
    "$sanitizer" --tool memcheck --leak-check full --report-api-errors no --error-exitcode 9 "$@"
}

# Every log of PyTorch's decisions with this GPU's memory behind its addresses.
# shellcheck disable=SC2317 # called by `part`
decisions() {
    passed=0
    failed=0
    for log in "$root"/tests/data/decisions/*.jsonl.gz; do
        if "$tarn" verify --memory cuda:0 "$log"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
    done
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

finish() {
    echo
    cat "$table"
    [ "$failures" -eq 0 ] || exit 1
    exit 0
}

{
    uname -srm
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
} >"$out/machine.log" 2>&1

part build build_tests || finish
part abi sh "$root/tests/abi/cuda.sh" || true
part device "$build/gpu_test" || true
if grep -q '^ok ' "$out/device.log"; then
    # The two others are in the whole library only.
    part examples sh "$root/examples/run.sh" "$build/examples" cuda:0 \
        hello streams graph limit ipc || true
else
    skip examples "no case ran on a GPU"
fi
tarn=${TARN:-$root/build/tarn}
if ! grep -q '^ok ' "$out/device.log"; then
    skip decisions "no case ran on a GPU"
elif ! "$tarn" --version >"$out/decisions.log" 2>&1; then
    skip decisions "$tarn does not run here"
else
    part decisions decisions || true
fi
sanitizer=$(find_tool compute-sanitizer)
if ! grep -q '^ok ' "$out/device.log"; then
    skip memcheck "no case ran on a GPU"
elif [ -z "$sanitizer" ]; then
    skip memcheck "no compute-sanitizer"
else
    part memcheck memcheck "$build/gpu_test" --no-fork || true
fi
finish
