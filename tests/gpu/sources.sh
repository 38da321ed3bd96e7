#!/bin/sh
# SPDX-License-Identifier: MIT
# sources.sh: what is built on machines with a GPU needs none of the libraries that they lack: no
# source of those builds includes their headers. Configures them; nothing is compiled.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/count.sh
. "$root/tests/cli/count.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
libraries='#include <(dwarf|elfutils/|libelf|gelf|zlib|zstd|sqlite3|jansson|cmocka)'

sources_of() { # FOLDER: the sources that its targets compile, one a line
    cmake -S "$root/$1" -B "$work/build" --fresh -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
        >"$work/log" 2>&1 &&
        awk -F'"' '/"file":/ { print $4 }' "$work/build/compile_commands.json" | sort -u
}

for folder in tests/gpu tests/gpu/torch_plug tests/gpu/run_program bench/torch_compare; do
    sources_of "$folder" >"$work/sources" && [ "$(grep -c /src/ "$work/sources")" -gt 50 ]
    count "$folder is configured" $?
    ! xargs grep -lE "$libraries" <"$work/sources"
    count "$folder needs the C library alone" $?
done
# Python binds all functions when it loads the library.
sources_of tests/gpu/torch_plug >"$work/sources"
sed -n 's/^    "\(tarn_[a-z0-9_]*\)": (.*/\1/p' "$root/python/tarn/_ffi.py" >"$work/functions"
xargs grep -hoE '(^|[ *])tarn_[a-z0-9_]*\(' <"$work/sources" | tr -d ' *(' |
    sort -u >"$work/present"
missing=$(sort -u "$work/functions" | comm -23 - "$work/present")
[ "$(grep -c . "$work/functions")" -gt 100 ] && [ -z "$missing" ]
count "tests/gpu/torch_plug has what Python binds${missing:+, but not $missing}" $?
echo "$root/src/history/debug_info_libdw.c" | xargs grep -qE "$libraries"
count "a source that needs a library is seen" $?

count_end
