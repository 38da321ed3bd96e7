#!/bin/sh
# SPDX-License-Identifier: MIT
# docs.sh: the reference of the public headers as HTML in build/docs. Fails and names them when
# functions have no comment, or when Doxygen cannot read one.
set -eu
cd "$(dirname "$0")/.."

out=build/docs
warnings=$out/warnings.txt
version=$(sed -n 's/^#define TARN_VERSION_STRING "\(.*\)"/\1/p' include/tarn/base.h)
rm -rf "$out"
mkdir -p "$out"
{
    cat docs/Doxyfile
    echo "OUTPUT_DIRECTORY = $out"
    echo "PROJECT_NUMBER = $version"
    echo "WARN_LOGFILE = $warnings"
} | doxygen -

# Names of members mostly say it all; a function needs a comment.
if grep -v 'is not documented' "$warnings" || grep '(function)' "$warnings"; then
    exit 1
fi
echo "docs: $out/index.html"
