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

in_project() { # COMPILER WAY
    outside_works "$1" "$2" -DTARN_SOURCE="$root"
    count "$2 with $1" $?
    installs_nothing "$work/$2-$1"
    count "$2 with $1 installs nothing of tarn" $?
    rm -rf "${work:?}/$2-$1"
}

# Every way and every compiler, but not each with each: that is four builds of the libraries.
# shellcheck disable=SC2046 # words
set -- $(compilers)
in_project "$1" add_subdirectory
in_project "${2:-$1}" FetchContent
count_end
