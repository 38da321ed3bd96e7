#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh TARN DUMP: compare.py, where there is a Python for it.
set -eu

if ! command -v python3 >/dev/null 2>&1; then
    echo "skip: there is no python3"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$(dirname "$0")/compare.py" "$1" "$2"
