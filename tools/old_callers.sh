#!/bin/sh
# SPDX-License-Identifier: MIT
# old_callers.sh BUILD_FOLDER [COMMIT]: programs that were compiled with the headers of an earlier
# commit and linked with its libraries run with those of the build: the examples, in C and C++,
# which between them use most of the interface. COMMIT is by default the last tag of this minor
# version, and without such a tag the commit since which the interface has only grown. The last line
# counts runs.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

minor=$(sed -n 's/^project(tarn VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' "$root/CMakeLists.txt")
tag=$(git -C "$root" tag --list "v$minor.*" --sort=-version:refname | head -n 1)
commit=${2:-${tag:-4e75fa4c}}

make_old() {
    cmake -S "$work/old" -B "$work/old/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DTARN_BUILD_BENCH=OFF &&
        cmake --build "$work/old/build/release" -j "${JOBS:-$(nproc)}"
}

mkdir "$work/old"
git -C "$root" archive "$commit" | tar -x -C "$work/old"
if ! make_old >"$work/log" 2>&1; then
    tail -n 20 "$work/log"
    echo "old_callers: commit $commit cannot be built here"
    exit 1
fi

# Each program finds the libraries of the build, not those beside it.
for program in "$work"/old/build/release/examples/*; do
    if [ -f "$program" ] && [ -x "$program" ]; then
        LD_LIBRARY_PATH=$build ldd "$program" | grep -q "libtarn.* => $build/" || {
            echo "old_callers: $(basename "$program") does not run with the libraries of $build"
            exit 1
        }
    fi
done
echo "old_callers: programs of commit $commit, libraries of $build"
LD_LIBRARY_PATH=$build sh "$work/old/examples/run.sh" "$work/old/build/release/examples"
