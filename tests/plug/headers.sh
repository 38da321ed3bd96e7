#!/bin/sh
# SPDX-License-Identifier: MIT
# headers.sh PYTORCH_SOURCE OUT: the headers that the glue needs, from an unpacked source package of
# PyTorch (Debian's will do), laid out under OUT as in an installed torch, with what its build would
# generate. Then
#     cmake --preset check -DTARN_TORCH_INCLUDE=OUT -DTARN_CUDA_INCLUDE=FOLDER
# compiles the glue and its tests for that version; FOLDER has cuda_runtime_api.h.
set -eu

if [ $# -ne 2 ] || [ ! -f "$1/version.txt" ]; then
    echo "usage: tests/plug/headers.sh PYTORCH_SOURCE OUT" >&2
    exit 2
fi
source=$1
out=$2
version=$(sed 's/[^0-9.].*//' "$source/version.txt") # 2.6.0a0: 2.6.0
whole=$version

mkdir -p "$out/torch"
folders="c10 torch/headeronly torch/csrc/api/include torch/csrc/cuda" # not all are in all versions
# shellcheck disable=SC2086
(cd "$source" && find $folders -name '*.h' 2>/dev/null) |
    while read -r header; do
        [ -f "$source/$header" ] || continue
        mkdir -p "$out/$(dirname "$header")"
        cp "$source/$header" "$out/$header"
    done
for name in c10/macros/cmake_macros c10/cuda/impl/cuda_cmake_macros \
    torch/headeronly/macros/cmake_macros; do
    [ -f "$source/$name.h.in" ] || continue
    sed -e 's/^#cmakedefine \(C10_[A-Z_]*BUILD_SHARED_LIBS\)/#define \1/' \
        -e 's/^#cmakedefine .*//' "$source/$name.h.in" >"$out/$name.h"
done
macros="MAJOR MINOR PATCH"
{
    echo "#pragma once"
    for macro in $macros; do
        echo "#define TORCH_VERSION_$macro ${version%%.*}"
        version=${version#*.}
    done
    echo "#define TORCH_VERSION \"$whole\""
} >"$out/torch/version.h"
[ ! -d "$out/torch/headeronly" ] || cp "$out/torch/version.h" "$out/torch/headeronly/version.h"
