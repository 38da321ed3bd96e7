#!/bin/sh
# SPDX-License-Identifier: MIT
# no_memory.sh PROGRAM DATA LIBRARY: commands that read JSON, once for each of their allocations,
# which finds no memory (support/fail_malloc.c). They say so with exit code 7 and one line, or do
# without; nothing worse.
set -u

tarn=$1
data=$2
library=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

enough=30 # runs in a row that found all they wanted: the last allocation is behind us

# Every n-th allocation fails, until there are no more.
run() { # NAME COMMAND [ARGUMENT...]
    name=$1
    shift
    n=1
    fine=0
    short=0
    bad=0
    while [ $fine -lt $enough ] && [ $n -lt 5000 ] && [ $bad -lt 5 ]; do
        FAIL_MALLOC_AT=$n LD_PRELOAD=$library "$tarn" "$@" >"$work/out" 2>"$work/err" </dev/null
        code=$?
        fine=$((fine + 1))
        if [ $code -eq 7 ] && [ "$(wc -l <"$work/err")" -eq 1 ]; then
            short=$((short + 1))
            fine=0
        elif [ $code -ne 0 ]; then
            bad=$((bad + 1))
            echo "$name, allocation $n: exit code $code, $(head -c 300 "$work/err")"
        fi
        n=$((n + 1))
    done
    [ $bad -eq 0 ] && [ $short -gt 5 ]
    count "$name: $short of $n runs fail for want of memory" $?
}

run verify verify "$data/logs/same.jsonl"
gzip -dc "$data/tracker/mlp_cuda.jsonl.gz" | head -n 30 >"$work/track.jsonl"
run track track "$work/track.jsonl"
run profile profile -q -f "$data/profiles/profile.json.gz" "$work/made.pickle"
run jsonl top --jsonl "$data/snapshots/tiny.pickle.gz"
run tree tree --by category "$data/snapshots/tiny.pickle.gz"
run measured replay --measured "$data/measured.json" "$data/snapshots/tiny.pickle.gz"

count_end
