#!/bin/sh
# SPDX-License-Identifier: MIT
# run_program.sh OUT_FOLDER: unmodified CUDA programs alone, under `tarn run` and served by tarn:
# same output and exit code, what was recorded, and the time of PyTorch's. Logs in OUT_FOLDER, a
# table last; the last line counts the cases. What is not installed is skipped.
#
# Needs a GPU, a C compiler and CMake 3.22; nvcc for the programs in C, python3 with torch, cupy,
# numba or jax for theirs. Builds in BUILD (default build/run_program).
set -eu

if [ $# -ne 1 ]; then
    echo "usage: tests/gpu/run_program.sh OUT_FOLDER" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
build=${BUILD:-$root/build/run_program}
limit=${SECONDS_A_CASE:-120}
mkdir -p "$1"
out=$(cd "$1" && pwd)
# shellcheck source=tests/cli/count.sh
. "$here/../cli/count.sh"

if ! {
    cmake -S "$here/run_program" -B "$build" && cmake --build "$build" -j "$(nproc)"
} >"$out/build.log" 2>&1; then
    tail -20 "$out/build.log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
tarn=$build/tarn
printf '| program | with | same | seconds | allocations | peak MiB | live MiB | check |\n' \
    >"$out/table.md"
printf '|---|---|---|--:|--:|--:|--:|---|\n' >>"$out/table.md"

# Of all files of the run, each a process.
figures() { # FILE...
    python3 - "$@" <<'END'
import pickle
import sys

count = most = live = 0
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    for trace in snapshot["device_traces"]:
        now = 0
        peak = 0
        for event in trace:
            if event["action"] == "segment_alloc" or event["action"] == "segment_map":
                now += event["size"]
                count += 1
                peak = max(peak, now)
            elif event["action"] == "segment_free" or event["action"] == "segment_unmap":
                now -= event["size"]
        most += peak
    live += sum(segment["total_size"] for segment in snapshot["segments"])
print(count, f"{most / 2**20:.1f}", f"{live / 2**20:.1f}")
END
}

follow() { # NAME POLICY COMMAND...
    name=$1
    policy=$2
    shift 2
    folder=$out/$name.$policy
    rm -rf "$folder"
    mkdir -p "$folder"
    code=0
    SECONDS_FILE=$folder/seconds timeout "$limit" "$tarn" run --record "$folder/run.pickle" \
        --summary --policy "$policy" --events 1000000 -- "$@" >"$folder/out" 2>"$folder/err" ||
        code=$?
    same=no
    if cmp -s "$out/$name.alone/out" "$folder/out" && [ "$code" -eq "$alone" ]; then
        same=yes
    fi
    [ $same = yes ]
    count "$name, $policy: same output and exit code (exit code $code)" $?
    checked=none
    numbers="- - -"
    if ls "$folder"/*.pickle >/dev/null 2>&1; then
        numbers=$(figures "$folder"/*.pickle)
        checked=yes
        for file in "$folder"/*.pickle; do
            "$tarn" check "$file" >>"$folder/check" 2>&1 || checked=no
        done
    fi
    [ $checked = yes ]
    count "$name, $policy: tarn check" $?
    # shellcheck disable=SC2086 # three figures
    set -- $numbers
    printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$name" "$policy" "$same" \
        "$(cat "$folder/seconds" 2>/dev/null || echo -)" "$1" "$2" "$3" "$checked" >>"$out/table.md"
}

compare() { # NAME COMMAND...
    name=$1
    shift
    folder=$out/$name.alone
    rm -rf "$folder"
    mkdir -p "$folder"
    alone=0
    SECONDS_FILE=$folder/seconds timeout "$limit" "$@" >"$folder/out" 2>"$folder/err" || alone=$?
    if [ "$alone" -ne 0 ]; then
        skip "$name does not run here (exit code $alone, $folder/err)"
        return
    fi
    printf '| %s | alone | | %s | | | | |\n' "$name" \
        "$(cat "$folder/seconds" 2>/dev/null || echo -)" >>"$out/table.md"
    for policy in observe native expandable compact; do
        follow "$name" "$policy" "$@" || true
    done
}

programs=$here/run_program/programs.py
set +e
if command -v nvcc >/dev/null 2>&1; then
    nvcc -cudart shared -o "$out/shared" "$here/run_program/sample.cu" &&
        nvcc -cudart static -o "$out/static" "$here/run_program/sample.cu" &&
        nvcc -cudart static -default-stream per-thread -o "$out/per_thread" \
            "$here/run_program/sample.cu" &&
        nvcc -o "$out/pages" "$here/run_program/pages.cu" -lcuda
    compare cudart_shared "$out/shared"
    compare cudart_static "$out/static"
    compare per_thread_stream "$out/per_thread"
    compare fork "$out/static" fork
    compare cuMemCreate "$out/pages"
else
    skip "no nvcc: the programs in C"
fi
for library in torch cupy numba jax; do
    if python3 -c "import $library" >/dev/null 2>&1; then
        compare "$library" env XLA_PYTHON_CLIENT_PREALLOCATE=false CUBLAS_WORKSPACE_CONFIG=:4096:8 \
            python3 "$programs" "$library"
    else
        skip "no $library"
    fi
done
if python3 -c "import torch" >/dev/null 2>&1; then
    compare torch_async env PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync \
        CUBLAS_WORKSPACE_CONFIG=:4096:8 python3 "$programs" torch
    compare processes python3 "$programs" processes
    compare shared python3 "$programs" shared
fi
"$here/driver_exports.sh"
code=$?
if [ $code -eq 2 ]; then
    skip "no driver"
else
    count "every memory function of the driver is known" $code
fi
cat "$out/table.md"
count_end
