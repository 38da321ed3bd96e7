#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD_DIR STANDIN RENAMED COMPILER: the tests of the Python package, on simulated devices
# and with a stand-in for torch: the C++ library of one, the same by another name, or "".
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null 2>&1; then
    echo "skip: there is no python3"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
export TARN_LIBRARY_DIR="$1"
export TARN_TORCH_STANDIN="$2"
export TARN_TORCH_STANDIN_RENAMED="$3"
export CC="$4"
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/run.py"
