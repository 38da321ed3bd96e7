# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Sourced by the scripts that take figures: where and of what they are. Sets
#   header   first line of a CSV file (figure.h says what the columns are)
#   origin   "date,machine,commit": begins every other line
#   file     name of the CSV file, DATE-COMMIT-MACHINE.csv
# The machine is its processor's model and the number of CPUs, and a GPU's name if it has one.
# COMMIT in the environment says which commit it is where there is no repository; NOTE, what a
# reader of the figures should know about the machine ("shared with other work").

# shellcheck disable=SC2034 # used by who sources this
header=date,machine,commit,allocator,pattern,unit,median,fastest,slowest

origin_machine() {
    model=$(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null) || gpu=""
    gpu=$(echo "$gpu" | head -n 1)
    echo "${model:-$(uname -m)}, $(nproc) CPUs${gpu:+, $gpu}" | tr ',' ';'
}

origin_slug() { # TEXT: letters, digits and dashes
    echo "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9]\{1,\}/-/g; s/^-//; s/-$//'
}

origin_date=$(date +%Y-%m-%d)
origin_commit=${COMMIT:-$(git -C "$(dirname "$0")" describe --always --dirty 2>/dev/null ||
    echo unknown)}
origin_machine=$(origin_machine)
# shellcheck disable=SC2034
origin=$origin_date,$origin_machine$(echo "${NOTE:+; $NOTE}" | tr ',' ';'),$origin_commit
# shellcheck disable=SC2034
file=$origin_date-$origin_commit-$(origin_slug "$origin_machine").csv
