#!/bin/sh
# SPDX-License-Identifier: MIT
# needed.sh LIBTARN: the library that manages memory needs the C library alone: of glibc, with the
# dynamic loader that is part of it, and of the compiler's own run-time, which glibc itself needs
# (libgcc_s, that walks stacks).
set -eu

needed=$(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
others=$(echo "$needed" |
    grep -Ev '^(lib(c|m|dl|pthread|rt|gcc_s)\.so\.[0-9]+|ld-linux-[a-z0-9-]+\.so\.[0-9]+)$' || true)
if ! echo "$needed" | grep -q '^libc\.so'; then
    echo "$1 needs no libc.so: readelf is not understood"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
if [ -n "$others" ]; then
    echo "$1 needs more than the C library:"
    echo "$others"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
echo "1 passed, 0 failed, 0 skipped"
