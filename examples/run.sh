#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh FOLDER [DEVICE]: runs every example in the folder on that device, or on a simulated one,
# with the default settings and with growing segments.
set -u

folder=$1
device=${2:-sim:2GiB,backed}
recorded=$(dirname "$0")/../tests/data/snapshots/tiny.pickle.gz
passed=0
failed=0

for settings in "" expandable_segments:True; do
    for example in hello streams graph limit ipc tracker; do
        echo "$example $device $settings"
        if PYTORCH_ALLOC_CONF=$settings "$folder/$example" "$device"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
    done
done
echo "what_if"
if "$folder/what_if" "$recorded"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
