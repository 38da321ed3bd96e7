#!/bin/sh
# SPDX-License-Identifier: MIT
# fleet.sh BUILD_FOLDER [PROCESSES...]: what a fleet costs. Makes RANKS snapshots (1000) of EVENTS
# (100000) each, varied by seed, a few of them with planted memory; summarises them with 1, 2, ...
# processes (by default up to the number of cores, doubling), merges, reports, and checks that the
# planted ranks are the outliers and no others. A table of Markdown on standard output; exit status
# 1 when a report is wrong. Snapshots (10 MB each) are made and removed in slices of SLICE (64), in
# TMPDIR (/tmp). Needs cmake's build of `tarn_program make_snapshot reader`, and `tarn_mpi` if there
# is MPI.
#
# Processes are those of xargs, in two ways: one for each snapshot, as on the host that wrote it
# ("each"), and one for each share of all ("shares"). With mpirun and tarn-mpi there are rows for
# them ("mpi"). The reader's speed is that of loading the same snapshots, one after the other, in
# one process that does nothing else.
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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

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

# shellcheck disable=SC2016,SC2012 # for the sh of xargs; the names are ours
summarize() { # PROCESSES
    rm -rf "$work/now"
    mkdir "$work/now"
    begin=$(now)
    (cd "$work/dumps" && ls) | sed 's/\.pickle$//' | xargs -P "$1" -n 1 sh -c \
        '"$0" summarize "$1/dumps/$2.pickle" --name "$2.pickle" -o "$1/now/$2.tsum"' \
        "$tarn" "$work"
    add "$work/each.$1" "$(elapsed "$begin")"
    (cd "$work/now" && cksum ./*) >"$work/sums.now"
    [ -f "$work/sums" ] || cp "$work/sums.now" "$work/sums"
    cmp "$work/sums" "$work/sums.now" || wrong "summaries differ with $1 processes"
}

# shellcheck disable=SC2016,SC2012 # for the sh of xargs; the names are ours
summarize_shares() { # PROCESSES
    rm -f "$work"/share.* "$work"/part.*
    (cd "$work/dumps" && ls) |
        awk -v n="$1" -v to="$work/share." '{ print > (to NR % n) }'
    begin=$(now)
    (cd "$work/dumps" && ls "$work"/share.* | sed 's/.*share\.//' | xargs -P "$1" -n 1 sh -c \
        '"$0" summarize "@$1/share.$2" -o "$1/part.$2.tsum"' "$tarn" "$work")
    add "$work/shares.$1" "$(elapsed "$begin")"
    "$tarn" merge "$work"/part.*.tsum -o "$work/parts.tsum" --force
    "$tarn" merge "$work/now" -o "$work/whole.tsum" --force
    cmp "$work/whole.tsum" "$work/parts.tsum" || wrong "summaries differ with $1 shares"
}

ranks_by_mpi() { # PROCESSES
    begin=$(now)
    # shellcheck disable=SC2086 # words
    (cd "$work" && $mpi -n "$1" "$tarn" ranks --mpi --json dumps) >"$work/mpi.now" </dev/null
    add "$work/mpi.$1" "$(elapsed "$begin")"
    [ -f "$work/mpi.out" ] || cp "$work/mpi.now" "$work/mpi.out"
    cmp "$work/mpi.out" "$work/mpi.now" || wrong "reports differ with $1 processes of mpirun"
}

failed=0
wrong() { # WHAT
    echo "fleet: $1" >&2
    failed=1
}

mkdir "$work/dumps" "$work/summaries"
first=0
while [ "$first" -lt "$ranks" ]; do
    limit=$((first + slice < ranks ? first + slice : ranks))
    echo "fleet: ranks $first to $((limit - 1))" >&2
    slice_make "$first" "$limit"
    rm -f "$work/sums" "$work/mpi.out"
    add "$work/reading" "$("$build/bench/reader" --load "$work"/dumps/*)"
    for count in "$@"; do
        summarize "$count"
        summarize_shares "$count"
        [ -z "$mpi" ] || ranks_by_mpi "$count"
    done
    if [ "$first" -eq 0 ]; then
        one_rss=$(rss "$tarn" summarize "$work/dumps/rank0.pickle")
        slice_rss=$(rss "$tarn" summarize "$work/dumps")
    fi
    mv "$work"/now/* "$work/summaries/"
    rm -f "$work"/dumps/*
    first=$limit
done

echo "## $ranks ranks of $events events"
echo
echo "$cores cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
echo
echo "| processes | by | seconds | of linear | of the reader's speed |"
echo "| --: | --- | --: | --: | --: |"
reading=$(cat "$work/reading")
for by in each shares mpi; do
    for count in "$@"; do
        [ -f "$work/$by.$count" ] || continue
        awk -v by=$by -v n="$count" -v base="$(cat "$work/$by.$1")" -v least="$1" \
            -v s="$(cat "$work/$by.$count")" -v reading="$reading" 'BEGIN {
            printf "| %d | %s | %.2f | %.2f | %.2f |\n", n, by, s, base * least / (s * n),
                reading / (s * n) }'
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
echo "| a snapshot read, without more | $(awk -v s="$reading" -v n="$ranks" \
    'BEGIN { printf "%.1f", s * 1000 / n }') ms |"
echo "| memory of one summarize | $one_rss MiB |"
echo "| memory of one summarize for a slice of $slice | $slice_rss MiB |"
echo "| a summary | $(($(cat "$work"/summaries/* | wc -c) / ranks / 1024)) KiB |"
echo "| all summaries merged | $(($(wc -c <"$work/all.tsum") / 1024)) KiB, $merge_all s |"
echo "| merge of 10,000 summaries | $merge_ten s, $merge_rss MiB |"
echo "| report on the merged | $report s, $report_rss MiB |"
echo "| planted ranks, found | $(wc -l <"$work/wanted"), $(wc -l <"$work/found") |"
exit "$failed"
