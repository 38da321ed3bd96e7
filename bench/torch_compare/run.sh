#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh OUT_FOLDER [SCALE]: PyTorch's allocator, cudaMallocAsync and tarn side by side on this
# machine, then tarn at scale; writes OUT_FOLDER/DATE-COMMIT-MACHINE.csv as it goes and prints the
# table of docs/performance.md last. SCALE multiplies the number of operations (default 1).
#
# Needs a C and a C++ compiler and CMake 3.25; python3 with torch and CUDA (nvcc), or what needs
# them is left out. Nothing else: no network, no repository (COMMIT=... in the environment says what
# is measured), none of the libraries of the snapshot reader. Builds in BUILD, by default
# build/torch_compare. About 5 minutes with everything, 2 of them without PyTorch.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: bench/torch_compare/run.sh OUT_FOLDER [SCALE]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
out=$1
scale=${2:-1}
build=${BUILD:-$root/build/torch_compare}
# shellcheck source=bench/origin.sh
. "$here/../origin.sh"

say() {
    echo "torch_compare: $*" >&2
}

find_cuda() { # prints the folder that has include/cuda_runtime_api.h
    compiler=$(command -v nvcc || true)
    for nvcc in "$compiler" "$(readlink -f "$compiler" 2>/dev/null || true)" \
        /usr/local/cuda/bin/nvcc; do
        folder=${nvcc%/bin/nvcc}
        if [ -n "$nvcc" ] && [ -f "$folder/include/cuda_runtime_api.h" ]; then
            echo "$folder"
            return
        fi
    done
}

find_torch() { # prints the folder of the package, without importing it
    folder=$(python3 -c '
import importlib.util
found = importlib.util.find_spec("torch")
print(found.submodule_search_locations[0] if found else "")' 2>/dev/null) || return 0
    if [ -f "$folder/lib/libc10_cuda.so" ]; then
        echo "$folder"
    fi
}

build_worker() { # NAME: a worker that may be left out
    if ! cmake --build "$build" --target "$1" >"$build/$1.log" 2>&1; then
        say "$1 is left out, it does not build:"
        tail -n 20 "$build/$1.log" >&2
    fi
}

cuda=$(find_cuda)
torch=$(find_torch)
[ -n "$cuda" ] || say "CUDA not found (no nvcc): cudaMallocAsync and PyTorch are left out"
[ -n "$torch" ] || say "torch not found (python3 has no package torch with CUDA): left out"

mkdir -p "$build" "$out"
out=$(cd "$out" && pwd)
rm -f "$build/worker_torch" "$build/worker_async"
cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCUDA_FOLDER="$cuda" \
    -DTORCH_FOLDER="$torch" >"$build/configure.log" || {
    cat "$build/configure.log" >&2
    exit 1
}
cmake --build "$build" -j "$(nproc)" >"$build/build.log" 2>&1 || {
    tail -n 40 "$build/build.log" >&2
    exit 1
}
[ -z "$cuda" ] || build_worker worker_async
[ -z "$cuda" ] || [ -z "$torch" ] || build_worker worker_torch
say "built in $build"

echo "$header" >"$out/$file"
"$build/compare" --origin "$origin" --csv "$out/$file" --scale "$scale" "$build"
say "many live blocks, many streams"
"$build/scale" --origin "$origin" >>"$out/$file" || say "scale failed"
say "what recording costs"
"$build/history" --origin "$origin" >>"$out/$file" || say "history failed"
"$root/tools/performance_table.sh" --print "$out/$file"
say "written to $out/$file"
