#!/bin/sh
# SPDX-License-Identifier: MIT
# build.sh BUILD_FOLDER: builds the workers of the other allocators that can be built here into
# BUILD_FOLDER/bench, where compare looks for them, and says of the rest why they are left out.
# VMA and OFFSET_ALLOCATOR in the environment: folders with the sources of VulkanMemoryAllocator and
# OffsetAllocator. A peer that does not build is left out too; the exit status is 0.
set -eu

[ $# -eq 1 ] || {
    echo "usage: bench/peers/build.sh BUILD_FOLDER" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
bench=$(cd "$1/bench" && pwd)
build=$bench/peers
log=$build/build.log

absolute() { # PATH, which may be empty or absent
    [ -z "$1" ] || (cd "$1" 2>/dev/null && pwd) || echo "$1"
}

mkdir -p "$build"
for name in vma offset set mimalloc jemalloc; do
    rm -f "$bench/worker_$name"
done
if ! cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$bench" -DVMA="$(absolute "${VMA:-}")" \
    -DOFFSET_ALLOCATOR="$(absolute "${OFFSET_ALLOCATOR:-}")" >"$log"; then
    echo "bench: all other allocators are left out, see $log" >&2
    exit 0
fi
while read -r name; do
    if ! cmake --build "$build" --target "worker_$name" >"$log" 2>&1; then
        echo "bench: $name is left out, it does not build:" >&2
        grep -m 3 'error' "$log" >&2 || tail -n 3 "$log" >&2
    fi
done <"$build/peers.txt"
