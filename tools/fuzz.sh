#!/bin/bash
# SPDX-License-Identifier: MIT
# fuzz.sh [-m MINUTES] [-r RUNS] [-k] [TARGET...]: runs the fuzz targets (all of fuzz/), each for
# MINUTES (30) or for RUNS executions, with a process for each of JOBS processors. Inputs that reach
# something new are kept in build/fuzz-corpus/TARGET, for the next run too; -k also keeps those that
# reach code nothing else does in fuzz/corpus/TARGET, to be committed.
#
# Ends with a table: executions, findings. What fails is in build/fuzz-found; exit status 1 then.
set -u
cd "$(dirname "$0")/.." || exit 1

minutes=30
runs=0
keep=no
while getopts m:r:k option; do
    case $option in
    m) minutes=$OPTARG ;;
    r) runs=$OPTARG ;;
    k) keep=yes ;;
    *)
        sed -n 's/^# \(fuzz.sh .*\): runs.*/usage: tools\/\1/p' "$0" >&2
        exit 2
        ;;
    esac
done
shift $((OPTIND - 1))
jobs=${JOBS:-$(nproc)}
programs=build/fuzz/fuzz
found=build/fuzz-found
if [ $# -eq 0 ]; then
    for source in fuzz/fuzz_*.c; do
        name=${source#fuzz/fuzz_}
        set -- "$@" "${name%.c}"
    done
fi

tools/setup.sh sanitize || exit 1
[ -f build/fuzz/build.ninja ] || cmake --preset fuzz >/dev/null || exit 1
cmake --build --preset fuzz -j "$jobs" >build/fuzz/build.log 2>&1 || {
    tail -n 20 build/fuzz/build.log
    exit 1
}
mkdir -p "$found"

# Inputs are small and there are many of them: long stacks of allocations, freed memory that is kept
# back and memory that is filled take longer than the code under test.
export ASAN_OPTIONS=malloc_context_size=4:max_malloc_fill_size=0:quarantine_size_mb=8
ASAN_OPTIONS=$ASAN_OPTIONS:allocator_release_to_os_interval_ms=-1
export UBSAN_OPTIONS=print_stacktrace=1
[ -w /dev/shm ] && export TMPDIR=/dev/shm

# run_one TARGET NUMBER: one process; its log is build/fuzz-corpus/TARGET.NUMBER.log.
run_one() {
    local limits=(-max_total_time=$((minutes * 60)))
    [ "$runs" -eq 0 ] || limits=(-runs=$(((runs + jobs - 1) / jobs)))
    local options=("${limits[@]}" -timeout=20 -rss_limit_mb=3000 -malloc_limit_mb=1500 -reload=1
        -entropic=0 -print_final_stats=1 "-artifact_prefix=$found/$1-")
    # What a document of the whole program's target says takes a few bytes a field.
    [ "$1" != program ] || options+=(-max_len=1500)
    [ ! -f "fuzz/$1.dict" ] || options+=("-dict=fuzz/$1.dict")
    "$programs/fuzz_$1" "${options[@]}" "build/fuzz-corpus/$1" "fuzz/corpus/$1" \
        >"build/fuzz-corpus/$1.$2.log" 2>&1
}

# run_target TARGET: all its processes; prints its row of the table.
run_target() {
    local pids=() failed=0 begun=$SECONDS
    mkdir -p "build/fuzz-corpus/$1" "fuzz/corpus/$1"
    for number in $(seq "$jobs"); do
        run_one "$1" "$number" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || failed=$((failed + 1))
    done
    awk -v target="$1" -v seconds=$((SECONDS - begun)) -v failed=$failed '
        /^stat::number_of_executed_units/ { executed += $2 }
        / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:" && $(i + 1) > edges) edges = $(i + 1) }
        END { printf "| %s | %d | %d | %d | %d |\n", target, executed, seconds, edges, failed }
    ' "build/fuzz-corpus/$1".*.log
    [ $failed -eq 0 ]
}

# Only inputs that reach an edge that no other reaches: few enough to be replayed by each test run.
keep_target() {
    "$programs/fuzz_$1" -set_cover_merge=1 -use_counters=0 -max_len=4000 "fuzz/corpus/$1" \
        "build/fuzz-corpus/$1" >"build/fuzz-corpus/$1.merge.log" 2>&1
}

status=0
echo "| target | executions | seconds | edges reached | processes that found something |"
echo "|---|--:|--:|--:|--:|"
for target in "$@"; do
    run_target "$target" || status=1
    [ $keep = no ] || keep_target "$target"
done
[ $status -eq 0 ] || echo "what fails is in $found; build/fuzz/fuzz/fuzz_TARGET FILE shows how"
exit $status
