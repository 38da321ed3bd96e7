#!/bin/sh
# SPDX-License-Identifier: MIT
# check_headers.sh [ROOT]: every header compiles alone as C17, those of include/tarn also as C99 and
# as C++11, .hpp as C++17, without a warning; those say what threads may do. Compilers: $CC and
# $CXX, by default gcc or clang and g++ or clang++.
set -eu

tools=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$tools/..}"

first_of() { # COMMAND...: the first one that exists
    for command in "$@"; do
        if [ -n "$command" ] && command -v "$command" >/dev/null 2>&1; then
            echo "$command"
            return
        fi
    done
}

cc=$(first_of "${CC:-}" gcc clang cc)
cxx=$(first_of "${CXX:-}" g++ clang++ c++)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# One source a header, named after it so that the compiler's message tells which one it was.
compile_all() { # WHAT SUFFIX LIST COMPILER FLAG...
    what=$1 suffix=$2 list=$3
    shift 3
    [ -s "$list" ] || return 0
    rm -rf "$work/src"
    while read -r header; do
        mkdir -p "$work/src/$(dirname "$header")"
        printf '#include "%s"\nextern int header_compiles_alone;\n' "$PWD/$header" \
            >"$work/src/$header.$suffix"
    done <"$list"
    if ! find "$work/src" -name "*.$suffix" -print0 | sort -z |
        xargs -0 -n 50 -P "$(nproc)" "$@" -fsyntax-only -Wall -Wextra -Wpedantic -Werror \
            -Iinclude -Isrc -Itests; then
        echo "check_headers: a header is not $what on its own" >&2
        failed=1
    fi
}

find include -name '*.h' 2>/dev/null | sort >"$work/public"
find include -name '*.hpp' 2>/dev/null | sort >"$work/hpp"
find include src tests/support -name '*.h' 2>/dev/null | sort >"$work/all"
if [ -z "$cc" ]; then
    echo "check_headers: no C compiler" >&2
    exit 1
fi
compile_all C17 c "$work/all" "$cc" -std=c17 -D_POSIX_C_SOURCE=200809L
compile_all C99 c "$work/public" "$cc" -std=c99
if [ -n "$cxx" ]; then
    # What projects that include the headers from their own tree often ask for as well.
    strict="-Wshadow -Wold-style-cast -Wzero-as-null-pointer-constant"
    # shellcheck disable=SC2086 # a list of options
    compile_all C++11 cc "$work/public" "$cxx" -std=c++11 $strict
    # shellcheck disable=SC2086 # likewise
    compile_all C++17 cc "$work/hpp" "$cxx" -std=c++17 $strict
else
    echo "skip: no C++ compiler, headers not compiled as C++11"
fi
cat "$work/public" "$work/hpp" >"$work/interface"
while read -r header; do
    if ! grep -qi 'thread' "$header"; then
        echo "check_headers: $header does not say what threads may do" >&2
        failed=1
    fi
done <"$work/interface"
exit $failed
