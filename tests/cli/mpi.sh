#!/bin/sh
# SPDX-License-Identifier: MIT
# mpi.sh PROGRAM DATA_FOLDER: `tarn ranks --mpi` says the same as `tarn ranks`, however many
# processes there are and whatever is wrong with some of the files.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

if ! command -v mpirun >where 2>&1; then
    skip "there is no mpirun"
    count_end
    exit
fi
if mpirun --version 2>&1 | grep -q 'Open MPI'; then
    many="--oversubscribe --allow-run-as-root"
else
    many=""
fi
# Processes that share two cores and write to one machine.
export OMPI_MCA_btl=self,vader OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm_rsh_agent=false

expect() { # CASE COMMAND...
    case=$1
    shift
    "$@"
    count "$case" $?
}

# Ranks 0 to 8; of rank 3 there is nothing, 4 is cut, 5 is hostile, 6 and 7 are summaries.
fleet() {
    mkdir fleet
    for rank in 0 1 2 8; do
        cp "$data/snapshots/multistream.pickle.gz" "fleet/rank$rank.pickle.gz" || return 1
    done
    cp "$data/snapshots/oom.pickle.gz" fleet/rank1.pickle.gz
    gzip -dc fleet/rank0.pickle.gz | head -c 20000 >fleet/rank4.pickle
    cp "$1" fleet/rank5.pickle
    for rank in 6 7; do
        "$tarn" summarize fleet/rank0.pickle.gz --name "rank$rank" -o "fleet/rank$rank.tsum"
    done
    { ls fleet/* && echo fleet/rank3.pickle; } >list
}

alone() { # NAME ARGUMENT...: what one process says
    name=$1
    shift
    "$tarn" ranks "$@" >"$name.out" 2>"$name.err"
    echo $? >"$name.code"
}

many_say_the_same() { # NAME PROCESSES ARGUMENT...
    name=$1
    count=$2
    shift 2
    # On a busy machine mpirun can lose what a process says on standard error just before its end.
    for _ in 1 2 3; do
        # shellcheck disable=SC2086 # words
        mpirun $many -n "$count" "$tarn" ranks --mpi "$@" >many.out 2>many.err </dev/null
        code=$?
        [ "$(grep -c '^tarn ranks: ' many.err)" -lt "$(grep -c '^tarn ranks: ' "$name.err")" ] ||
            break
    done
    [ "$code" -eq "$(cat "$name.code")" ] || { cat many.err; return 1; }
    cmp "$name.out" many.out || { cat many.err; return 1; }
    grep '^tarn ranks: ' "$name.err" | LC_ALL=C sort >one.names
    grep '^tarn ranks: ' many.err | LC_ALL=C sort >many.names
    diff one.names many.names
}

all_are_named() {
    for rank in 3 4 5; do
        grep -q "rank$rank.pickle" folder.err || return 1
    done
}

no_mpi_in_tarn() {
    ! ldd "$tarn" | grep -q libmpi
}

refused_without_the_program() {
    cp "$tarn" alone-tarn && ./alone-tarn ranks --mpi fleet 2>err
    [ $? -eq 3 ] && grep -q 'package tarn-mpi' err
}

expect "a fleet is made" fleet "$(find "$data/hostile/unsafe" -type f | LC_ALL=C sort | head -n 1)"
alone folder --device-total 80GiB @list
alone json --json @list
alone none nothing1 nothing2
expect "each file that cannot be used is named" all_are_named
for count in 1 2 7; do
    expect "$count processes, text" many_say_the_same folder $count --device-total 80GiB @list
done
expect "16 processes, JSON" many_say_the_same json 16 --json @list
expect "no file can be used" many_say_the_same none 2 nothing1 nothing2
expect "tarn links no MPI" no_mpi_in_tarn
expect "without tarn-mpi it says what is missing" refused_without_the_program
count_end
