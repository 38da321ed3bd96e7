#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh FOLDER [DEVICE [EXAMPLE...]]: runs these examples of the folder, by default all, on that
# device, or on a simulated one, with the default settings and with growing segments.
set -u

folder=$1
device=${2:-sim:2GiB,backed}
recorded=$(dirname "$0")/../tests/data/snapshots/tiny.pickle.gz
passed=0
failed=0
if [ $# -gt 2 ]; then
    shift 2
else
    set -- hello streams graph limit server tenants devices ipc tracker what_if peak watched
    [ -x "$folder/adaptors" ] && set -- "$@" adaptors # needs a C++ compiler
fi

run() { # SETTINGS EXAMPLE ARGUMENT...
    settings=$1
    program=$2
    shift 2
    echo "$program $* $settings"
    if PYTORCH_ALLOC_CONF=$settings "$folder/$program" "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
}

for example in "$@"; do
    if [ "$example" = what_if ] || [ "$example" = peak ]; then # about a recorded run
        run "" "$example" "$recorded"
    elif [ "$example" = devices ]; then # of its own, if they are not named
        run "" devices
        run expandable_segments:True devices
    elif [ "$example" = watched ]; then # for a second, on a device of its own size
        run "" "$example" sim:16GiB 1
    else
        run "" "$example" "$device"
        run expandable_segments:True "$example" "$device"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
