#!/bin/sh
# SPDX-License-Identifier: MIT
# aarch64.sh: libtarn compiles for aarch64, with Debian's cross compiler. Skipped where there is
# none (tools/setup.sh packages).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/count.sh
. "$root/tests/cli/count.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

cross=aarch64-linux-gnu-gcc
if ! echo '#include <stdlib.h>' | $cross -E - >/dev/null 2>&1; then
    skip "there is no $cross with headers (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross)"
    count_end
    exit
fi

it_compiles() {
    {
        cmake -S "$root" -B "$work/build" -G Ninja -DCMAKE_SYSTEM_NAME=Linux \
            -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=$cross -DCMAKE_BUILD_TYPE=Debug \
            -DTARN_WERROR=ON -DTARN_BUILD_TOOLS=OFF -DTARN_BUILD_PLUG=OFF -DTARN_LIBDW=OFF &&
            cmake --build "$work/build" --target tarn_shared
    } >"$work/log" 2>&1 || {
        tail -n 30 "$work/log"
        return 1
    }
}

is_of_aarch64() {
    readelf -hW "$work/build/libtarn.so" | grep -q 'Machine: *AArch64'
}

it_compiles
count "it compiles" $?
is_of_aarch64
count "it is a library of aarch64" $?
count_end
