#!/bin/sh
# SPDX-License-Identifier: MIT
# fleet.sh BUILD_FOLDER [PROCESSES...]: what a fleet costs. Makes RANKS snapshots (1000) of EVENTS
# (100000) each, varied by seed, a few of them with planted memory; reads and summarises them with
# 1, 2, ... processes (by default up to the number of cores, doubling), merges, reports, and checks
# that the planted ranks are the outliers and no others. Tables of Markdown on standard output; exit
# status 1 when a report is wrong. Snapshots (15 MB each) are made and removed in slices of SLICE
# (64), in TMPDIR (/tmp). Needs cmake's build of `tarn_program make_snapshot reader`, and `tarn_mpi`
# if there is MPI.
#
# Processes are those of xargs, in two ways: one for each snapshot, as on the host that wrote it
# ("each"), and one for each share of all ("shares"). With mpirun and tarn-mpi there are rows for
# them ("mpi"). The reader, which loads snapshots and does nothing else, goes the same ways: started
# by the same command lines, on the same files, with the same memory. Processors change their speed
# within seconds, so both go a slice in turns, the reader first in one slice and last in the next,
# and "of the reader's speed" is the median of the slices: many small ones make it certain.
#
# Why n processes are less than n times as fast stands in two columns: the processor's time for a
# snapshot, which rises when processes share caches, memory and cores, and how much of the n cores'
# time is used, which falls when they wait for a disk, or for the last process. The rows "sums" are
# of processes that add numbers and touch no memory: what the clock of so many busy cores allows.
#
# PIN=1 lets processes run on one thread of each physical core only, as many cores as there are
# processes; the default for PROCESSES is then up to the number of those. TMPDIR=/dev/shm takes the
# disk out.
set -eu
export LC_ALL=C

build=$(cd "$1" && pwd)
shift
tarn=$build/cli/tarn
ranks=${RANKS:-1000}
events=${EVENTS:-100000}
slice=${SLICE:-64}
depth=36
kept=6800    # MiB that every rank holds; what comes and goes is less than 1 % of it
planted=7100 # MiB that a planted rank holds
every=$((ranks / 5 > 0 ? ranks / 5 : 1)) # a planted rank after so many
cores=$(nproc)
pin=${PIN:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One thread of each physical core that may be used, a number per line.
physical_cores() {
    for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
        number=${cpu##*/cpu}
        if taskset -c "$number" true 2>/dev/null; then
            echo "$(cat "$cpu/topology/thread_siblings_list" 2>/dev/null || echo "$number") $number"
        fi
    done | sort -k 2n | awk '!seen[$1]++ { print $2 }'
}

if [ -n "$pin" ]; then
    physical_cores >"$work/cores"
    cores=$(wc -l <"$work/cores")
fi

on_cores() { # PROCESSES COMMAND...
    if [ -n "$pin" ]; then
        only=$(head -n "$1" "$work/cores" | paste -s -d , -)
        shift
        taskset -c "$only" "$@"
    else
        shift
        "$@"
    fi
}

if [ $# -eq 0 ]; then
    count=1
    while [ "$count" -le "$cores" ]; do
        set -- "$@" "$count"
        count=$((count * 2))
    done
fi
mpi=""
if [ -x "$build/cli/tarn-mpi" ] && command -v mpirun >/dev/null 2>&1; then
    mpi="mpirun"
    if mpirun --version 2>&1 | grep -q 'Open MPI'; then
        mpi="mpirun --oversubscribe --allow-run-as-root"
    fi
fi

now() {
    date +%s.%N
}

elapsed() { # SINCE
    awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.3f", b - a }'
}

add() { # FILE SECONDS: adds to the number in it
    awk -v a="$(cat "$1" 2>/dev/null || echo 0)" -v b="$2" 'BEGIN { printf "%.3f", a + b }' \
        >"$1.new"
    mv "$1.new" "$1"
}

# Seconds of the processor that this shell's children took so far.
cpu() {
    times >"$work/times"
    awk 'NR == 2 { gsub(/[ms]/, " "); printf "%.3f", $1 * 60 + $2 + $3 * 60 + $4 }' "$work/times"
}

# Adds the time of a command, by the clock and of the processor, to that of a way; the latter alone
# is in the file last.WAY.
timed() { # WAY PROCESSES COMMAND...
    last=$work/last.$1
    way=$1.$2
    shift
    cpu >"$work/cpu.before"
    begin=$(now)
    on_cores "$@"
    add "$work/wall.$way" "$(elapsed "$begin")"
    cpu >"$work/cpu.after"
    awk -v a="$(cat "$work/cpu.before")" -v b="$(cat "$work/cpu.after")" \
        'BEGIN { print b - a }' >"$last"
    add "$work/cpu.$way" "$(cat "$last")"
}

median() { # FILE: of its numbers; nothing without the file
    [ ! -f "$1" ] || sort -n "$1" |
        awk '{ v[NR] = $1 } END { printf "%.2f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# Most resident memory of a command, in MiB; "-" where nothing here can tell.
rss() { # COMMAND...
    if command -v python3 >/dev/null 2>&1; then
        python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024))' "$@"
    else
        "$@" >/dev/null
        echo -
    fi
}

is_planted() { # RANK
    [ $(($1 % every)) -eq $((every / 2)) ]
}

# shellcheck disable=SC2016 # for the sh of xargs
slice_make() { # FIRST LIMIT
    rank=$1
    while [ "$rank" -lt "$2" ]; do
        if is_planted "$rank"; then
            echo "rank$rank $((rank + 1)) $planted"
        else
            echo "rank$rank $((rank + 1)) $kept"
        fi
        rank=$((rank + 1))
    done | xargs -P "$cores" -n 3 sh -c \
        '"$0" "$1/$4.pickle" "$2" "$3" "$5" "$6"' \
        "$build/bench/make_snapshot" "$work/dumps" "$events" "$depth"
    cat "$work"/dumps/* >/dev/null # in the page cache, for all alike
}

# shellcheck disable=SC2012 # the names are ours
lists_make() { # PROCESSES
    rm -f "$work"/share.* "$work"/part.*
    (cd "$work/dumps" && ls) | sed 's/\.pickle$//' >"$work/names"
    (cd "$work/dumps" && ls) |
        awk -v n="$1" -v to="$work/share." '{ print > (to NR % n) }'
    ls "$work"/share.* | sed 's/.*share\.//' >"$work/shares"
}

summarize() { # PROCESSES
    rm -rf "$work/now"
    mkdir "$work/now"
    timed each "$1" xargs -a "$work/names" -P "$1" -I NAME "$tarn" summarize \
        "$work/dumps/NAME.pickle" --name NAME.pickle -o "$work/now/NAME.tsum"
}

check_each() { # PROCESSES
    (cd "$work/now" && cksum ./*) >"$work/sums.now"
    [ -f "$work/sums" ] || cp "$work/sums.now" "$work/sums"
    cmp "$work/sums" "$work/sums.now" || wrong "summaries differ with $1 processes"
}

summarize_shares() { # PROCESSES
    cd "$work/dumps"
    # shellcheck disable=SC2016 # for the sh of xargs
    timed shares "$1" xargs -a "$work/shares" -P "$1" -I SHARE sh -c \
        'exec "$0" summarize $(cat "$1") -o "$2"' "$tarn" "$work/share.SHARE" \
        "$work/part.SHARE.tsum"
    cd "$work"
}

check_shares() { # PROCESSES
    "$tarn" merge "$work"/part.*.tsum -o "$work/parts.tsum" --force
    "$tarn" merge "$work/now" -o "$work/whole.tsum" --force
    cmp "$work/whole.tsum" "$work/parts.tsum" || wrong "summaries differ with $1 shares"
}

read_each() { # PROCESSES
    cd "$work/dumps"
    timed read-each "$1" xargs -a "$work/names" -P "$1" -I NAME "$build/bench/reader" --load \
        NAME.pickle >"$work/read"
    cd "$work"
}

read_shares() { # PROCESSES
    cd "$work/dumps"
    # shellcheck disable=SC2016 # for the sh of xargs
    timed read-shares "$1" xargs -a "$work/shares" -P "$1" -I SHARE sh -c \
        'exec "$0" --load $(cat "$1")' "$build/bench/reader" "$work/share.SHARE" >"$work/read"
    cd "$work"
}

# As many sums as there are snapshots in a slice, each of about 0.1 s.
sums() { # PROCESSES
    timed sums "$1" xargs -a "$work/names" -P "$1" -n 1 awk \
        'BEGIN { for (i = 0; i < 2000000; i++) x += i }'
}

# All ways of a slice, those that are compared next to each other.
in_turns() { # PROCESSES
    lists_make "$1"
    if [ "$reader_first" -eq 1 ]; then
        read_each "$1"
        summarize "$1"
        read_shares "$1"
        summarize_shares "$1"
    else
        summarize_shares "$1"
        read_shares "$1"
        summarize "$1"
        read_each "$1"
    fi
    for by in each shares; do
        awk -v a="$(cat "$work/last.read-$by")" -v b="$(cat "$work/last.$by")" \
            'BEGIN { if (b > 0) printf "%.4f\n", a / b }' >>"$work/speed.$by.$1"
    done
    sums "$1"
    check_each "$1"
    check_shares "$1"
}

ranks_by_mpi() { # PROCESSES
    cd "$work"
    # shellcheck disable=SC2086 # words
    timed mpi "$1" $mpi -n "$1" "$tarn" ranks --mpi --json dumps >"$work/mpi.now" </dev/null
    [ -f "$work/mpi.out" ] || cp "$work/mpi.now" "$work/mpi.out"
    cmp "$work/mpi.out" "$work/mpi.now" || wrong "reports differ with $1 processes of mpirun"
}

failed=0
wrong() { # WHAT
    echo "fleet: $1" >&2
    failed=1
}

mkdir "$work/dumps" "$work/summaries"
reader_first=1
first=0
while [ "$first" -lt "$ranks" ]; do
    limit=$((first + slice < ranks ? first + slice : ranks))
    echo "fleet: ranks $first to $((limit - 1))" >&2
    slice_make "$first" "$limit"
    rm -f "$work/sums" "$work/mpi.out"
    for count in "$@"; do
        in_turns "$count"
        [ -z "$mpi" ] || ranks_by_mpi "$count"
    done
    if [ "$first" -eq 0 ]; then
        one_rss=$(rss "$tarn" summarize "$work/dumps/rank0.pickle")
        slice_rss=$(rss "$tarn" summarize "$work/dumps")
    fi
    mv "$work"/now/* "$work/summaries/"
    rm -f "$work"/dumps/*
    first=$limit
    reader_first=$((1 - reader_first))
done

echo "## $ranks ranks of $events events"
echo
echo "$(nproc) cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
echo
[ -z "$pin" ] || echo "One thread of each of $cores physical cores."
[ -z "$pin" ] || echo
echo "| processes | by | seconds | of linear | processor, ms a snapshot | of the cores' time |" \
    "of the reader's speed |"
echo "| --: | --- | --: | --: | --: | --: | --: |"
for by in each shares mpi read-each read-shares sums; do
    for count in "$@"; do
        [ -f "$work/wall.$by.$count" ] || continue
        awk -v by=$by -v n="$count" -v base="$(cat "$work/wall.$by.$1")" -v least="$1" \
            -v s="$(cat "$work/wall.$by.$count")" -v cpu="$(cat "$work/cpu.$by.$count")" \
            -v ranks="$ranks" -v speed="$(median "$work/speed.$by.$count")" 'BEGIN {
            printf "| %d | %s | %.2f | %.2f | %.1f | %.2f | %s |\n", n, by, s,
                base * least / (s * n), cpu * 1000 / ranks, cpu / (s * n), speed }'
    done
done
echo

begin=$(now)
"$tarn" merge "$work/summaries" -o "$work/all.tsum"
merge_all=$(elapsed "$begin")
: >"$work/many"
copies=0
while [ $((copies * ranks)) -lt 10000 ]; do
    find "$work/summaries" -name '*.tsum' >>"$work/many"
    copies=$((copies + 1))
done
head -n 10000 "$work/many" >"$work/ten"
begin=$(now)
merge_rss=$(rss "$tarn" merge "@$work/ten" -o "$work/ten.tsum")
merge_ten=$(elapsed "$begin")
begin=$(now)
"$tarn" ranks --csv -n 20 "$work/all.tsum" >"$work/report.csv"
report=$(elapsed "$begin")
report_rss=$(rss "$tarn" ranks "$work/all.tsum")

"$tarn" ranks -n 100000 "$work/all.tsum" | awk '/, device 0  outlier$/ { print $6 }' |
    tr -d , | sort >"$work/found"
rank=0
while [ "$rank" -lt "$ranks" ]; do
    if is_planted "$rank"; then
        echo "rank$rank.pickle"
    fi
    rank=$((rank + 1))
done | sort >"$work/wanted"
cmp "$work/wanted" "$work/found" || wrong "the outliers are not the planted ranks"

echo "| what | figure |"
echo "| --- | --: |"
echo "| memory of one summarize | $one_rss MiB |"
echo "| memory of one summarize for a slice of $slice | $slice_rss MiB |"
echo "| a summary | $(($(cat "$work"/summaries/* | wc -c) / ranks / 1024)) KiB |"
echo "| all summaries merged | $(($(wc -c <"$work/all.tsum") / 1024)) KiB, $merge_all s |"
echo "| merge of 10,000 summaries | $merge_ten s, $merge_rss MiB |"
echo "| report on the merged | $report s, $report_rss MiB |"
echo "| planted ranks, found | $(wc -l <"$work/wanted"), $(wc -l <"$work/found") |"
exit "$failed"
