#!/bin/sh
# SPDX-License-Identifier: MIT
# run_cost.sh OUT_FOLDER: what `tarn run` costs and saves on a GPU: nanoseconds per pair of calls,
# and seconds of PyTorch's steps, alone, recorded by `observe` and served (not recorded), in turns.
# Medians of PAIRS (5) processes each, as tables in OUT_FOLDER/cost.md.
#
# Needs a GPU, nvcc and CMake 3.22; python3 with torch for the steps. Builds in BUILD (default
# build/run_program).
set -eu

if [ $# -ne 1 ]; then
    echo "usage: tests/gpu/run_cost.sh OUT_FOLDER" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
build=${BUILD:-$root/build/run_program}
pairs=${PAIRS:-5}
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    cmake -S "$here/run_program" -B "$build" && cmake --build "$build" -j "$(nproc)" &&
        nvcc -O2 -o "$work/calls" "$here/run_program/calls.cu"
} >"$out/build.log" 2>&1

under() { # POLICY COMMAND...
    policy=$1
    shift
    case $policy in
    alone) "$@" ;;
    observe) "$build/tarn" run -f --record "$work/run.pickle" -- "$@" ;;
    *) "$build/tarn" run --policy "$policy" -- "$@" ;;
    esac
}

median() { # FILE...
    cat "$@" | sort -g | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

row() { # NAME: of all policies, as they were noted
    printf '| %s' "$1"
    for policy in alone observe native expandable compact; do
        if [ -s "$work/$policy.notes" ]; then
            printf ' | %s' "$(median "$work/$policy.notes")"
        else
            printf ' | -'
        fi
    done
    printf ' |\n'
    rm -f "$work"/*.notes
}

calls() { # WAY LIVE FRAMES
    turn=0
    while [ $turn -lt "$pairs" ]; do
        for policy in alone observe native expandable compact; do
            under $policy "$work/calls" "$@" >>"$work/$policy.notes" 2>>"$out/errors.log" || true
        done
        turn=$((turn + 1))
    done
    row "$1, $2 alive, $3 frames"
}

steps() { # NAME [NAME=VALUE...]
    name=$1
    shift
    turn=0
    while [ $turn -lt "$pairs" ]; do
        for policy in alone observe native expandable compact; do
            SECONDS_FILE=$work/seconds under $policy env STEPS=1000 "$@" \
                python3 "$here/run_program/programs.py" torch >/dev/null 2>>"$out/errors.log" &&
                cat "$work/seconds" >>"$work/$policy.notes"
        done
        turn=$((turn + 1))
    done
    row "$name"
}

{
    echo "| ns per pair | alone | observe | native | expandable | compact |"
    echo "|---|--:|--:|--:|--:|--:|"
    for way in sync async; do
        calls $way 1 5
        calls $way 1000 5
        calls $way 1000 30
    done
    if python3 -c "import torch" >/dev/null 2>&1; then
        echo
        echo "| seconds for 1,000 steps | alone | observe | native | expandable | compact |"
        echo "|---|--:|--:|--:|--:|--:|"
        steps "PyTorch"
        steps "PyTorch, backend:cudaMallocAsync" \
            PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
    fi
} | tee "$out/cost.md"
