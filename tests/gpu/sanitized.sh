#!/bin/sh
# SPDX-License-Identifier: MIT
# sanitized.sh OUT_FOLDER [SECONDS]: mixed training with tarn as PyTorch's allocator under
# compute-sanitizer's memcheck, under each policy in turns for SECONDS (600) in all: an access to
# memory that is not mapped at that moment is an error. With AT_ONCE=1 all policies at the same time
# on each GPU, each for SECONDS and with 0.28 of its memory; the tool needs the rest. Logs in
# OUT_FOLDER; the last line counts the processes.
#
# Needs a GPU, CUDA's toolkit, compilers for C and C++, CMake 3.22, python3 with torch, transformers
# and torchvision. Builds in BUILD (default build/torch_plug).
set -eu

if [ $# -lt 1 ]; then
    echo "usage: tests/gpu/sanitized.sh OUT_FOLDER [SECONDS]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
build=${BUILD:-$root/build/torch_plug}
seconds=${2:-600}
at_once=${AT_ONCE:-}
mkdir -p "$1" "$build"
out=$(cd "$1" && pwd)
build=$(cd "$build" && pwd)
# shellcheck source=tests/cli/count.sh
. "$here/../cli/count.sh"

tool=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")
if [ ! -x "$tool" ]; then
    skip "no compute-sanitizer"
    count_end
    exit 0
fi
# As CUDA_VISIBLE_DEVICES names them.
gpus=$(python3 -c 'import os, torch
named = os.environ.get("CUDA_VISIBLE_DEVICES")
print(*named.split(",") if named else range(torch.cuda.device_count()))')
if [ -n "$at_once" ]; then
    each=$seconds
    share=0.28
else
    gpus=${gpus%% *}
    share=1
    each=$((seconds / 3 - 20))
fi
export PYTHONPATH="$root/python" TARN_LIBRARY_DIR="$build" TARN_CACHE_DIR="$build/cache"
export PYTHONDONTWRITEBYTECODE=1
if ! {
    cmake -S "$here/torch_plug" -B "$build" -DTARN_CHECKS=none &&
        cmake --build "$build" -j "$(nproc)" && python3 -m tarn.torch --build
} >"$out/build.log" 2>&1; then
    tail -n 20 "$out/build.log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
number=0
pieces=""
# piece SETTINGS GPU SECONDS: in the background; its status is in a file beside its log.
piece() {
    number=$((number + 1))
    pieces="$pieces $number"
    echo "${1:-default settings}" >"$out/settings$number"
    (
        status=0
        # A step that has begun is finished: some time for it, and for the tool's report.
        # For backtraces of the host the tool keeps Python's tensors: 26 GiB after one step of
        # generation, with PyTorch's own allocator as well.
        CUDA_VISIBLE_DEVICES=$2 timeout -k 10 $(($3 + 180)) "$tool" --tool memcheck \
            --report-api-errors no --show-backtrace device --error-exitcode 9 \
            python3 "$here/compact/mixed.py" "$1" "$3" "$number" "$share" \
            >"$out/memcheck$number.log" 2>&1 </dev/null || status=$?
        echo $status >"$out/status$number"
    ) &
}

report() { # what has ended
    wait
    for ended in $pieces; do
        log=$out/memcheck$ended.log
        status=$(cat "$out/status$ended")
        grep "allocations," "$log" || tail -n 5 "$log"
        grep "ERROR SUMMARY" "$log" || true
        result=1
        if [ "$status" -eq 0 ] && grep -q "ERROR SUMMARY: 0 errors" "$log"; then
            result=0
        fi
        count "memcheck, $(cat "$out/settings$ended") (exit status $status)" $result
    done
    pieces=""
}

for gpu in $gpus; do
    for settings in "" expandable_segments:True policy:compact; do
        piece "$settings" "$gpu" "$each"
        [ -n "$at_once" ] || report
    done
done
report
count_end
