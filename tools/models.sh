#!/bin/sh
# SPDX-License-Identifier: MIT
# models.sh: checks the models of tests/model exhaustively with Spin (tests/model/README.md).
#
# One line per model: its name, its states, the seconds. The right models must have no error and no
# unreached code that is not explained below; the wrong variants must fail, for the reason that the
# list names. Ends with N passed, N failed, N skipped; exit status 1 if something failed.
set -eu
cd "$(dirname "$0")/.."
models=$PWD/tests/model

if ! command -v spin >/dev/null 2>&1; then
    echo "skip: models need spin (package spin)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
rm -f build/models/test_counts
passed=0
failed=0
[ -z "${TARN_BY_DAY:-}" ] || echo "not by day: the wrong variants (make nightly has them)"

# SPIN_OPTIONS CC_OPTIONS PAN_OPTIONS MODEL: leaves what the verifier printed in $work/out.
verify() {
    # shellcheck disable=SC2086 # lists of options
    (
        cd "$work"
        rm -f pan pan.* ./*.trail
        spin $1 -a "$models/$4.pml"
        "${CC:-cc}" -O2 -w -DMEMLIM=4096 $2 -o pan pan.c
        ./pan $3
    ) >"$work/out" 2>&1 || true
}

# Unreached states, without the ends of processes that never end and the monitor, which waits for
# a violation. Parts that are used in several places (inline) can have ways that only some of these
# take: of such a model all actions must be reached, which are what it prints.
unreached() { # all or actions
    awk -v which="$1" '
        /^unreached in proctype/ { process = $4 }
        /^unreached in claim/ { process = "Monitor" }
        /, state [0-9]+, / && !/"-end-"/ && process != "Monitor" &&
            (which == "all" || /printf/) { print }' "$work/out"
}

report() { # PASSED NAME TEXT
    if [ "$1" = yes ]; then
        passed=$((passed + 1))
        echo "$2: $3"
    else
        failed=$((failed + 1))
        echo "$2: FAILED: $3"
        sed 's/^/    /' "$work/out" | head -n 40
    fi
}

measure() { # what the verifier says about itself
    awk '/states, stored/ { states = $1 }
        /pan: elapsed time/ { seconds = $4 }
        END { printf "%s states, %s s", states, seconds }' "$work/out"
}

right() { # MODEL NAME REACHED SPIN_OPTIONS CC_OPTIONS PAN_OPTIONS; REACHED: all, actions or some
    verify "$4" "$5" "$6" "$1"
    if ! grep -q 'errors: 0$' "$work/out" ||
        grep -qE 'search depth too small|reached -DMEMLIM|out of memory' "$work/out"; then
        report no "$1, $2" "no complete search without errors"
    elif [ "$3" != some ] && [ -n "$(unreached "$3")" ]; then
        unreached "$3" >"$work/unreached"
        mv "$work/unreached" "$work/out"
        report no "$1, $2" "something is never reached"
    else
        report yes "$1, $2" "$(measure)"
    fi
}

# They check the models themselves, and are left to the night.
wrong() { # MODEL VARIANT REASON OTHER_SPIN_OPTIONS CC_OPTIONS PAN_OPTIONS
    [ -z "${TARN_BY_DAY:-}" ] || return 0
    verify "-D$2 $4" "-O0 $5" "$6" "$1" # most are found at once: compiling is what takes time
    if grep -q "^pan:1: $3" "$work/out"; then
        report yes "$1, wrong: $2" "found, $(measure)"
    else
        report no "$1, wrong: $2" "not found: $3"
    fi
}

exact="-DSAFETY"
collapsed="-DSAFETY -DCOLLAPSE"
live="-DNFAIR=9"

right biased_lock "three threads" all "" "$exact" "-m200000"
right biased_lock "two threads and a visitor" some "-DVISIT" "$exact" "-m200000"
right biased_lock "whoever has the word enters" some "-DLIVE" "$live" "-a -f -m400000"
for variant in LOCAL_BARRIER NO_RECHECK ONE_SEAT NO_WAIT; do
    wrong biased_lock $variant "assertion violated (holders==1)" "" "$exact" "-m200000"
done
wrong biased_lock TRY_KEEPS_WORD "invalid end state" "" "$exact" "-m200000"
wrong biased_lock WAIT_FIRST "acceptance cycle" "-DLIVE" "$live" "-a -f -m200000"
wrong biased_lock BIAS_FIRST "assertion violated (holders==1)" "-DVISIT" "$exact" "-m200000"

right latch "a writer, a reader, one that comes late" all "" "$exact" "-m200000"
for variant in NO_RECHECK GENERATION_LAST NO_WRITE_FENCE; do
    wrong latch $variant "assertion violated (word" "" "$exact" "-m200000"
done
for variant in CURRENT_FIRST ONE_COPY; do
    wrong latch $variant "assertion violated (((memory" "" "$exact" "-m200000"
done

parts="-DCOUNTS_BLOCKS=0"
right stream_cache "both counters, no log" some "-DNO_LOG -DALWAYS_OPEN" "$exact" "-m2000000 -w24"
right stream_cache "opening and closing, no log" some "-DNO_LOG $parts" "$exact" "-m3000000 -w24"
right stream_cache "logs" actions "$parts" "$collapsed" "-m14000000 -w25"
for variant in FOLD_FIRST UNLOCKED CLAMP KEEP_LIMITS FREE_NEEDS_NONE ROOM_FOR_EACH; do
    wrong stream_cache $variant "assertion violated" "$parts" "$exact" "-m300000 -w22"
done
wrong stream_cache WAIT "invalid end state" "$parts" "$exact" "-m300000 -w22"
wrong stream_cache MISS_KEEPS_LIMITS "assertion violated" "$parts -DSLOTS=3" "$exact" \
    "-m300000 -w24"

moves="-DNO_STORE -DNO_SHARING -DNO_PRIVATE"
right page_mover "pages move between two streams" actions "-DCALLS=4 $moves" "$exact" \
    "-m300000 -w24"
right page_mover "pages are kept" actions "-DMARKS=2 -DNO_SHARING -DNO_PRIVATE" "$exact" \
    "-m300000 -w24"
right page_mover "blocks used on both streams" actions "-DNO_STORE -DNO_PRIVATE" "$exact" \
    "-m300000 -w24"
right page_mover "a graph is replayed" actions "-DNO_STORE -DNO_SHARING" "$exact" "-m300000 -w24"
# What the code chooses of all this, and what traces are made of (tests/model/replay_pages.sh).
right page_mover "as the code chooses" some "-DTRACE -DQUEUE=7" "$exact" "-m300000 -w22"
right page_mover "as the code chooses, longer" some "-DTRACE -DQUEUE=7 -DCALLS=4 -DNO_SHARING" \
    "$exact" "-m300000 -w22"
wrong page_mover UNMAP_AT_ONCE "assertion violated (at_place" "$moves" "$exact" "-m300000 -w22"
for variant in TAKE_BUSY NO_WAIT SAME_EPOCH; do
    wrong page_mover $variant "assertion violated (touched" "-DMARKS=2 $moves" "$exact" \
        "-m300000 -w22"
done
wrong page_mover KEEP_FOR_ALL "assertion violated (touched" "-DCALLS=4 -DNO_SHARING -DNO_PRIVATE" \
    "$exact" "-m300000 -w22"
wrong page_mover TAKE_PRIVATE "assertion violated (touched" "-DNO_STORE -DNO_SHARING" "$exact" \
    "-m300000 -w22"
wrong page_mover FREE_IN_USE "assertion violated (touched" "-DNO_STORE -DNO_PRIVATE" "$exact" \
    "-m300000 -w22"

mkdir -p build/models
echo "$passed passed, $failed failed, 0 skipped" | tee build/models/test_counts
[ "$failed" -eq 0 ]
