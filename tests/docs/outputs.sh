#!/bin/sh
# SPDX-License-Identifier: MIT
# outputs.sh PROGRAM: outputs.py, where there is Python.
set -u
if ! command -v python3 >/dev/null; then
    echo "skip: python3 is not there"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
exec python3 "$(dirname "$0")/outputs.py" "$1"
