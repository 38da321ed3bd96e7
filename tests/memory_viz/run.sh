#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh SCRIPT TARN [DUMP]: compare.py or roundtrip.py, where there is a Python for it.
set -eu

if ! command -v python3 >/dev/null 2>&1; then
    echo "skip: there is no python3"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
export PYTHONDONTWRITEBYTECODE=1
script="$(dirname "$0")/$1"
shift
exec python3 "$script" "$@"
