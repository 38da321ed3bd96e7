#!/bin/sh
# SPDX-License-Identifier: MIT
# stable.sh BUILD_FOLDER: the interface of both libraries is that of the last tag of this minor
# version, and without such a tag the one that tests/abi keeps. Functions may be added. A wanted
# change, which CHANGELOG.md tells under ABI: `tools/abi.sh` renews what is kept. Skipped without
# abidiff (tools/setup.sh packages).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/count.sh
. "$root/tests/cli/count.sh"
build=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

skip_all() { # REASON
    skip "$1"
    count_end
    exit
}

command -v abidiff >/dev/null || skip_all "there is no abidiff (abigail-tools)"
[ "$(uname -m)" = x86_64 ] || skip_all "the interface that is kept is that of x86-64"
readelf -SW "$build/libtarn.so" | grep -q '\.debug_info' ||
    skip_all "$build has no debug information"

minor=$(sed -n 's/^project(tarn VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' "$root/CMakeLists.txt")
tag=$(git -C "$root" tag --list "v$minor.*" --sort=-version:refname 2>/dev/null | head -n 1)

kept() { # LIBRARY: its interface as $work/LIBRARY.kept.abi
    if [ -n "$tag" ] && git -C "$root" cat-file -e "$tag:tests/abi/$1.abi.gz" 2>/dev/null; then
        git -C "$root" show "$tag:tests/abi/$1.abi.gz" | gzip -dc >"$work/$1.kept.abi"
    else
        gzip -dc "$root/tests/abi/$1.abi.gz" >"$work/$1.kept.abi"
    fi
}

same() { # KEPT NOW
    abidiff --no-added-syms --suppressions "$root/tests/abi/private.abignore" "$1" "$2" \
        >"$work/difference" 2>&1
}

"$root/tools/abi.sh" "$build" "$work"
count "the interface is read" $?
gzip -d "$work"/*.abi.gz
for library in libtarn libtarn-tools; do
    kept "$library"
    if same "$work/$library.kept.abi" "$work/$library.abi"; then
        count "$library" 0
    else
        cat "$work/difference"
        count "the interface of $library.so is that of ${tag:-tests/abi} (a wanted change, told in \
CHANGELOG.md under ABI: tools/abi.sh)" 1
    fi
done

# Changes are seen: a field less, a function less.
sed "s/\(<class-decl name='tarn_stats' size-in-bits='\)[0-9]*/\164/" "$work/libtarn.abi" \
    >"$work/smaller.abi"
! same "$work/libtarn.abi" "$work/smaller.abi"
count "a struct of another size is seen" $?
grep -v "elf-symbol name='tarn_allocator_create_on'" "$work/libtarn.abi" >"$work/fewer.abi"
! same "$work/libtarn.abi" "$work/fewer.abi"
count "a function that is gone is seen" $?
count_end
