#!/bin/sh
# SPDX-License-Identifier: MIT
# adaptors.sh OUT_FOLDER: the adaptors with the libraries that they are for, on a machine with a
# GPU; what is not installed is skipped with a reason. Needs a build (make build, or
# TARN_LIBRARY_DIR). Writes OUT_FOLDER/adaptors.txt.
set -u

if [ $# -ne 1 ]; then
    echo "usage: tests/gpu/adaptors.sh OUT_FOLDER" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
out=$1
passed=0
failed=0
skipped=0

mkdir -p "$out" || exit 1
: >"$out/adaptors.txt"
export TARN_LIBRARY_DIR="${TARN_LIBRARY_DIR:-$root/build/release}"

say() {
    echo "$1" | tee -a "$out/adaptors.txt"
}

finish() {
    say "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

count() { # NAME STATUS: by the output in $out/adaptor.log
    cat "$out/adaptor.log" >>"$out/adaptors.txt"
    case $2 in
    0)
        passed=$((passed + 1))
        say "$1: passed, $(tail -n 1 "$out/adaptor.log")"
        ;;
    77)
        skipped=$((skipped + 1))
        say "$1: $(grep '^skip: ' "$out/adaptor.log" | tail -n 1)"
        ;;
    *)
        failed=$((failed + 1))
        tail -n 15 "$out/adaptor.log"
        say "$1: FAILED"
        ;;
    esac
}

if ! command -v nvidia-smi >/dev/null 2>&1; then
    say "skip: there is no GPU"
    skipped=1
    finish
fi
say "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)"
for peer in cupy numba onnxruntime jax; do
    status=0
    timeout 300 python3 "$here/adaptors_cases.py" "$peer" >"$out/adaptor.log" 2>&1 || status=$?
    count "$peer" "$status"
done

# TensorRT's header, if it is there: the adaptor compiles over the real interface.
status=77
echo "skip: NvInferRuntime.h is not installed" >"$out/adaptor.log"
for folder in ${TENSORRT_INCLUDE:-} /usr/include/x86_64-linux-gnu /usr/include \
    /usr/local/tensorrt/include; do
    if [ -e "$folder/NvInferRuntime.h" ]; then
        echo '#include <NvInferRuntime.h>
#include "adaptors/tensorrt_tarn.hpp"
int main() { return sizeof(tarn::tensorrt_allocator) == 0; }' >"$out/tensorrt.cpp"
        status=0
        c++ -std=c++17 -fsyntax-only -I "$root/include" -I "$root" -I "$folder" \
            -I "${CUDA_INCLUDE:-/usr/local/cuda/include}" "$out/tensorrt.cpp" \
            >"$out/adaptor.log" 2>&1 || status=$?
        [ "$status" -eq 0 ] && echo "compiles" >"$out/adaptor.log"
        break
    fi
done
count tensorrt "$status"
rm -f "$out/adaptor.log"
finish
