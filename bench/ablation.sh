#!/bin/sh
# SPDX-License-Identifier: MIT
# ablation.sh BUILD_FOLDER [SNAPSHOT...]: what each part of the fast path gains. Builds bench
# without one part after the other and without all (src/alloc/config/fast_path.h), lets the builds
# take turns ROUNDS times (5), and prints a table: nanoseconds with all parts, and how many times as
# long it takes without a part. A figure is the median over the rounds of the fastest of a round's
# repetitions: other work on the machine only makes runs slower. SCALE (0.5) multiplies the number
# of operations. All figures of all rounds are left in BUILD_FOLDER/ablation.csv.
set -eu

[ $# -gt 0 ] || {
    echo "usage: bench/ablation.sh BUILD_FOLDER [SNAPSHOT...]" >&2
    exit 2
}
build=$1
shift
rounds=${ROUNDS:-5}
scale=${SCALE:-0.5}
parts="undo_log stream_caches backoff biased_lock short_way"

targets="bench bench_plain"
for part in $parts; do
    targets="$targets bench_without_$part"
done
# shellcheck disable=SC2086
cmake --build "$build" --target $targets >"$build/ablation.log" 2>&1 || {
    tail -n 20 "$build/ablation.log" >&2
    exit 1
}

run() { # PROGRAM NAME SNAPSHOT...
    program=$1
    name=$2
    shift 2
    "$build/bench/$program" --origin -,-,- --scale "$scale" --name "$name" "$@"
}

: >"$build/ablation.csv"
round=0
while [ "$round" -lt "$rounds" ]; do
    run bench all "$@" >>"$build/ablation.csv"
    for part in $parts; do
        run "bench_without_$part" "$part" "$@" >>"$build/ablation.csv"
    done
    run bench_plain none "$@" >>"$build/ablation.csv"
    round=$((round + 1))
done

awk -F, -v parts="all $parts none" '
    { n = ++count[$4, $5]; value[$4, $5, n] = $8 + 0 }
    $4 == "all" && count["all", $5] == 1 { patterns[++pattern_count] = $5 }
    function median(name, pattern,    n, i, j, sorted, held) {
        n = count[name, pattern]
        for (i = 1; i <= n; i++) {
            held = value[name, pattern, i]
            for (j = i - 1; j > 0 && sorted[j] > held; j--) {
                sorted[j + 1] = sorted[j]
            }
            sorted[j + 1] = held
        }
        return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
    }
    END {
        columns = split(parts, part, " ")
        printf "| pattern | ns with all |"
        for (c = 2; c < columns; c++) {
            printf " without %s |", part[c]
        }
        printf " without any |\n|---|---:|"
        for (c = 2; c <= columns; c++) {
            printf "---:|"
        }
        for (p = 1; p <= pattern_count; p++) {
            all = median("all", patterns[p])
            printf "\n| %s | %.1f |", patterns[p], all
            for (c = 2; c <= columns; c++) {
                printf " %.2f |", median(part[c], patterns[p]) / all
            }
        }
        print ""
    }' "$build/ablation.csv"
