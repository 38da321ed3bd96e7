#!/bin/sh
# SPDX-License-Identifier: MIT
# subproject.sh: tarn inside of somebody else's project, by add_subdirectory and by FetchContent (of
# a folder: no network). It is built there with that project's settings, and adds nothing but its
# two libraries.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/count.sh
. "$root/tests/cli/count.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/consume/outside.sh
. "$root/tests/consume/outside.sh"

installs_nothing() { # FOLDER
    cmake --install "$1" --prefix "$work/prefix" >/dev/null 2>&1 && [ ! -e "$work/prefix" ]
}

for compiler in $(compilers); do
    for way in add_subdirectory FetchContent; do
        outside_works "$compiler" "$way" -DTARN_SOURCE="$root"
        count "$way with $compiler" $?
        installs_nothing "$work/$way-$compiler"
        count "$way with $compiler installs nothing of tarn" $?
        rm -rf "${work:?}/$way-$compiler"
    done
done
count_end
