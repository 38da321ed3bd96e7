#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD_DIR COMPILER PLUGGABLE STUB TORCH_INCLUDE CUDA_INCLUDE: the tests of the Python
# package, on simulated devices and with a stand-in for torch: the library of its pluggable
# allocator and the folder of the libraries that its allocator class is linked with, "" where they
# could not be built.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null 2>&1; then
    echo "skip: there is no python3"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
export TARN_LIBRARY_DIR="$1"
export CC="$2"
export STANDIN_PLUGGABLE="$3"
export STANDIN_STUB_DIR="$4"
export STANDIN_TORCH_INCLUDE="$5"
export STANDIN_CUDA_INCLUDE="$6"
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/run.py"
