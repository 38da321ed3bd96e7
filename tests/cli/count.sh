# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Read by the scripts beside it: counts cases, and tells those that fail and why others are skipped.
# The last line of a script is count_end.
passed=0
failed=0
skipped=0

count() { # NAME STATUS
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1"
    fi
}

skip() { # REASON
    skipped=$((skipped + 1))
    echo "skip: $1"
}

# Fails when a case did, or when there was none.
count_end() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
}
