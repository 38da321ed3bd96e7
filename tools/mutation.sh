#!/bin/sh
# SPDX-License-Identifier: MIT
# mutation.sh build|pack|run [run.py option]...: how many small mistakes the tests notice.
#
#   build  copies the sources to build/mutation/tree, writes all mutants of src/alloc, src/device,
#          src/analysis and src/snapshot into them (tools/mutation/instrument.py), and builds the
#          tests with them (tools/setup.sh mutation)
#   pack   makes build/mutation/pack.tar.xz of what `run` needs on another x86-64 machine with
#          Linux, Python and no compiler:
#              tar -xJf pack.tar.xz -C / && sh FOLDER/tree/tools/mutation.sh run --seconds 420
#          where FOLDER is build/mutation here: the tests know their data by absolute paths
#   run    tries mutants in random order (tools/mutation/run.py has the options); results, a line
#          for each, in build/mutation/results.tsv
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
case $root in
*/build/mutation/tree) work=${root%/tree} ;; # from a pack
*) work=$root/build/mutation ;;
esac
tree=$work/tree

build() {
    cd "$root"
    rm -rf "$tree/src" "$tree/tests" # keeps the build folder, and with it what did not change
    mkdir -p "$tree"
    git ls-files -z | xargs -0 cp --parents -p -t "$tree"
    # shellcheck disable=SC2046
    /usr/bin/python3 tools/mutation/instrument.py "$tree" $(git ls-files 'src/alloc/*.[ch]' \
        'src/device/*.[ch]' 'src/analysis/*.[ch]' 'src/snapshot/*.[ch]')
    cd "$tree"
    cmake --preset check -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_FLAGS="-O1 -w -include $root/tools/mutation/mutant.h" -DCMAKE_CXX_FLAGS="-O1 -w" \
        -DTARN_READER=OFF -DTARN_BUILD_BENCH=OFF >/dev/null
    cmake --build --preset check -j "${JOBS:-$(nproc)}" >"$work/build.log" || {
        tail -n 20 "$work/build.log"
        exit 1
    }
    cc -shared -fPIC -O1 -o one_case.so "$root/tools/mutation/one_case.c"
    # Which tests there are, for machines without CMake.
    ctest --test-dir build/check --show-only=json-v1 >tests.json
}

pack() {
    libraries=$tree/lib
    mkdir -p "$libraries"
    find "$tree/build/check/tests" -maxdepth 1 -type f -perm -u+x -exec ldd {} + 2>/dev/null |
        awk '/=> \// { print $3 }' | sort -u |
        grep -vE "^$tree|/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so" |
        xargs cp -L -t "$libraries"
    find "$tree/build/check" -maxdepth 2 -type f -perm -u+x -exec strip {} + 2>/dev/null || true
    find "$tree/build/check" \( -path '*/examples' -o -path '*/cli' \) -prune -o \
        -maxdepth 2 -type f \( -perm -u+x -o -name '*.so*' \) -print >"$work/pack.list"
    find "$tree/build/check" -maxdepth 1 -type l -print >>"$work/pack.list"
    for path in build/check/cli/tarn tests fuzz/corpus tools mutants.tsv tests.json one_case.so \
        lib; do
        echo "$tree/$path" >>"$work/pack.list"
    done
    # The same modules are in most programs: a long window finds them again.
    XZ_OPT="-T1 --lzma2=preset=1,dict=64MiB" tar -cJf "$work/pack.tar.xz" -P -T "$work/pack.list" \
        --transform 's,^/,,'
    du -h "$work/pack.tar.xz"
}

run() {
    if [ -d "$tree/lib" ]; then
        export LD_LIBRARY_PATH="$tree/lib"
    fi
    # The lists of what no test kills are those of now.
    [ "$root" = "$tree" ] || cp "$root"/tests/mutation/*.tsv "$tree/tests/mutation/"
    python3 "$root/tools/mutation/run.py" "$tree" "$work/results.tsv" "$@"
}

case ${1:-} in
build | pack | run)
    job=$1
    shift
    "$job" "$@"
    ;;
*)
    sed -n 's/^# \(mutation.sh [^:]*\):.*/usage: tools\/\1/p' "$0" >&2
    exit 2
    ;;
esac
