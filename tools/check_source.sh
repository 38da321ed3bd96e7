#!/bin/sh
# SPDX-License-Identifier: MIT
# check_source.sh [ROOT]: the rules of CONTRIBUTING.md that text alone can tell (check_source.awk
# has them). Prints `file:line: what is wrong` for each breach; exit status 1 if there is one.
set -eu

tools=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$tools/..}"

list_files() { # what git knows or would add; every file where there is no repository
    if [ -e .git ]; then
        git ls-files --cached --others --exclude-standard
    else
        find . -type f | sed 's|^\./||'
    fi
}

list_files | LC_ALL=C sort -u | while read -r file; do
    [ ! -f "$file" ] || echo "$file"
done | LC_ALL=C awk -f "$tools/check_source.awk"
