#!/bin/bash
# SPDX-License-Identifier: MIT
# nightly.sh [JOB...]: what takes too long for every change (docs/trust.md), or only these jobs of
# it. Every job runs even if one before it failed; exit status 0 only if all passed. A job whose
# tools are missing fails. JOBS processes; MINUTES (30) for the mutants and for each fuzz target,
# OPERATIONS (100000000) of random programs of each policy. Random programs, schedules and mutants
# are other ones every day. Logs in build/nightly, also a line for each job with the commit.
set -u
cd "$(dirname "$0")/.." || exit 1
minutes=${MINUTES:-30}
operations=${OPERATIONS:-100000000}
jobs=${JOBS:-$(nproc)}
logs=build/nightly
mkdir -p "$logs"
failures=()
wanted=" $* "
ran=0
commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
day=$(($(date +%s) / 86400))
seeds=83400

say() { # TEXT
    echo "nightly: $1" && echo "$commit: $1" >>"$logs/jobs"
}

job() { # NAME COMMAND...
    local begun=$SECONDS
    case "$wanted" in "  " | *" $1 "*) ;; *) return ;; esac
    ran=$((ran + 1))
    if "${@:2}" </dev/null >"$logs/$1.log" 2>&1 &&
        ! tail -n 1 "$logs/$1.log" | grep -q '^0 passed'; then
        say "$1 passed, $((SECONDS - begun)) s: $(tail -n 1 "$logs/$1.log")"
    else
        failures+=("$1")
        say "$1 FAILED, $((SECONDS - begun)) s: $logs/$1.log"
    fi
}

# Programs of random operations against the second allocator, with a seed of this day, which the
# log has.
random_programs() {
    cmake --preset check >/dev/null && cmake --build --preset check -j "$jobs" >/dev/null &&
        build/check/tests/property --operations "$operations" --seed "$(date +%Y%m%d)"
}

# The same for the compact policy, whose test follows every page: 1,500 calls a program.
compact_programs() {
    cmake --preset check >/dev/null &&
        cmake --build --preset check -j "$jobs" --target test_compact_property >/dev/null &&
        build/check/tests/test_compact_property "$(date +%Y%m%d)" $((operations / 1500 + 1))
}

# The same for backend:cudaMallocAsync, beside a second allocator of its own: 400 calls a program.
async_programs() {
    cmake --preset check >/dev/null &&
        cmake --build --preset check -j "$jobs" --target test_async_property >/dev/null &&
        build/check/tests/test_async_property "$(date +%Y%m%d)" $((operations / 400 + 1))
}

schedules() {
    cmake --preset check >/dev/null &&
        cmake --build --preset check -j "$jobs" --target schedules >/dev/null &&
        build/check/tests/schedules --from $((day * seeds)) --seeds $seeds # of each workload
}

# A day's worth of events for each policy.
soak() {
    cmake --preset release -B build/soak -DTARN_BUILD_TESTS=ON >/dev/null &&
        cmake --build build/soak -j "$jobs" --target soak >/dev/null || return 1
    for conf in "" expandable_segments:True policy:compact backend:cudaMallocAsync \
        garbage_collection_threshold:0.6,max_split_size_mb:24; do
        build/soak/tests/soak --conf "$conf" || return 1
    done
}

old_callers() {
    make build JOBS="$jobs" >/dev/null && tools/old_callers.sh build/release
}

job proofs make prove
job wrong_bodies tools/prove.sh --wrong
job analyzer env ANALYZER_NODES=225000 make lint JOBS="$jobs"
job old_callers old_callers
job soak soak
job tests make test JOBS="$jobs"
job viewer make test-viewer
job models make test-models
job sanitizers env TARN_TEST_SHARE=1 make sanitize JOBS="$jobs"
job random_programs random_programs
job compact_programs compact_programs
job async_programs async_programs
job schedules schedules
job mutation make mutation JOBS="$jobs" MINUTES="$minutes" SEED="$day"
job coverage make coverage JOBS="$jobs"
job fuzz make fuzz JOBS="$jobs" MINUTES="$minutes"

if [ ${#failures[@]} -gt 0 ]; then
    echo "nightly: failed: ${failures[*]}"
    exit 1
fi
if [ "$ran" -lt $(($# > 0 ? $# : 1)) ]; then
    echo "nightly: there is no such job as one of: $*" >&2
    exit 2
fi
echo "nightly: all jobs passed"
