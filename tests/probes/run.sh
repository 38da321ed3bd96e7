#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh LIBRARY DOCUMENT: the library has every probe that the document lists and no other, with
# their arguments.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/../cli/count.sh"

library=$1
document=$2

if ! echo '#include <sys/sdt.h>' | "${CC:-cc}" -E - >/dev/null 2>&1; then
    echo "skip: no sys/sdt.h (package systemtap-sdt-dev)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
# NAME ARGUMENTS, of the provider tarn.
found=$(readelf -n "$library" | awk '
    /Provider: / { is_ours = $2 == "tarn" }
    /Name: / { name = $2 }
    /Arguments: / && is_ours { print name, NF - 1 }' | sort -u)
listed=$(awk -F'|' '/^\| probe of provider/ { in_table = 1; next }
    in_table && !/^\|/ { exit }
    in_table && /`/ { gsub(/[` ]/, "", $2); print $2 }' "$document" | sort -u)
for probe in malloc free oom map unmap move; do
    echo "$found" | grep -q "^$probe "
    count "the library has the probe $probe" $?
    echo "$listed" | grep -qx "$probe"
    count "the document has the probe $probe" $?
done
[ "$(echo "$found" | cut -d' ' -f1 | sort -u)" = "$listed" ]
count "both have the same probes" $?
[ "$(echo "$found" | grep -c ' 4$')" -eq 5 ] && echo "$found" | grep -qx 'free 1'
count "they have four arguments, free has one" $?
count_end
