#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh TARN LINKED WAYS DRIVER VERSIONED: `tarn run` before programs that find the
# driver's functions in different ways. Their output and exit code stay, and the snapshot has what
# they allocated. DRIVER and VERSIONED are folders with a libcuda.so.1.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/../cli/count.sh"

tarn=$1
linked=$2
ways=$3
driver=$4
versioned=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
LD_LIBRARY_PATH=$driver
export LD_LIBRARY_PATH

same() { # NAME OPTIONS PROGRAM [ARGUMENT]...: the program alone, and with tarn run
    name=$1
    options=$2
    shift 2
    "$@" >plain 2>plain.err
    plain_code=$?
    rm -f ./*.pickle
    # shellcheck disable=SC2086 # several options
    "$tarn" run $options -- "$@" >followed 2>followed.err
    code=$?
    cmp -s plain followed && cmp -s plain.err followed.err && [ "$code" -eq "$plain_code" ]
    result=$?
    [ "$result" -eq 0 ] || { diff plain followed; cat followed.err; echo "exit code $code"; }
    count "$name: same output, and exit code $plain_code" "$result"
}

recorded() { # NAME FILE ALLOCATIONS PEAK LIVE: in bytes of device memory
    [ -s "$2" ] || { count "$1: there is no snapshot" 1; return; }
    "$tarn" check "$2" >said 2>&1
    result=$?
    [ $result -eq 0 ] || cat said
    count "$1: tarn check" $result
    for command in info peak; do
        "$tarn" $command "$2" >said 2>&1
        count "$1: tarn $command" $?
    done
    "$tarn" export --to jsonl "$2" >events
    "$tarn" stats "$2" >said 2>&1
    count "$1: tarn stats" $?
    "$tarn" peak --json "$2" >peak.json
    figures=$(python3 - "$2" <<'END'
import pickle
import sys

with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
now = most = count = 0
for event in snapshot["device_traces"][0]:
    if event["action"] == "alloc":
        now += event["size"]
        count += 1
        most = max(most, now)
    elif event["action"] == "free_completed":
        now -= event["size"]
live = sum(segment["allocated_size"] for segment in snapshot["segments"])
print(count, most, live if live == now else "contradicts itself")
END
    )
    [ "$figures" = "$3 $4 $5" ]
    result=$?
    [ $result -eq 0 ] || echo "    recorded: $figures; allocated: $3 $4 $5"
    count "$1: every byte is recorded" $result
}

# What program_work allocates: 1 KiB, 3 MiB, 1024 rows of 1 KiB, 2 MiB and 1 MiB by stream, 1 MiB
# managed, a page of 2 MiB, and 5 MiB that stay.
work_figures="8 5242880 5242880"
observed() { # NAME PROGRAM [ARGUMENT]...
    name=$1
    shift
    same "$name" "--record run.pickle" "$@"
    # shellcheck disable=SC2086 # three figures
    recorded "$name" run.pickle $work_figures
}

observed "linked" "$linked"
for way in dlsym default proc proc_v1 ptsz; do
    observed "$way" "$ways" "$way"
done
LD_LIBRARY_PATH=$versioned
observed "dlvsym" "$ways" dlvsym
observed "linked, functions with versions" "$linked"
LD_LIBRARY_PATH=$driver
observed "exec" "$ways" exec

# On request, of a program that leaves no file at its end.
"$ways" dlsym ask >plain 2>plain.err
rm -f ./*.pickle
"$tarn" run --record run.pickle --on-signal USR2 -- "$ways" dlsym ask run.pickle >followed
[ $? -eq 3 ] && cmp -s plain followed
count "on request: same output" $?
# shellcheck disable=SC2086 # three figures
recorded "on request" run.pickle $work_figures

# The end of a program, where it frees what the file has as allocated.
same "frees at exit" "--record run.pickle" "$ways" dlsym ends
recorded "frees at exit" run.pickle 2 3072 3072
same "frees at exit, served" "--policy native" "$ways" dlsym ends

# What the loader's functions owe to their caller.
same "RTLD_NEXT" "--record run.pickle" "$ways" next
[ ! -e run.pickle ]
count "a program without CUDA leaves no file" $?
same "RTLD_DEEPBIND" "--record run.pickle" "$ways" deep
recorded "RTLD_DEEPBIND" run.pickle 2 5243904 5242880

same "threads" "--record run.pickle --stacks none" "$ways" dlsym threads
recorded_threads=$(python3 -c 'import pickle
events = pickle.load(open("run.pickle", "rb"))["device_traces"][0]
print(sum(event["action"] == "alloc" for event in events),
      sum(event["action"] == "free_completed" for event in events))')
[ "$recorded_threads" = "3200 3200" ]
count "threads: every call is recorded ($recorded_threads)" $?

# Processes.
same "fork, the child uses CUDA" "--record run.pickle" "$ways" dlsym fork
[ ! -e run.pickle ] && mv run.*.pickle child.pickle
count "the child's file has its process id" $?
# shellcheck disable=SC2086 # three figures
recorded "the child" child.pickle $work_figures
same "fork, the parent uses CUDA" "--record run.pickle" "$ways" dlsym late
# shellcheck disable=SC2086 # three figures
recorded "the parent" run.pickle $work_figures
[ "$(echo ./*.pickle)" = ./run.pickle ]
count "the child leaves no file" $?

same "two processes share memory" "--record run.pickle" "$ways" dlsym share

# tarn serves.
for policy in native expandable compact; do
    same "$policy" "--policy $policy" "$linked"
    same "$policy, threads" "--policy $policy" "$ways" proc threads
    same "$policy, memory shared by two processes" "--policy $policy" "$ways" dlsym share
    same "$policy, limit" "--policy $policy --limit 1GiB --record run.pickle" "$ways" ptsz
    "$tarn" check run.pickle >said 2>&1
    result=$?
    [ $result -eq 0 ] || cat said
    count "$policy: tarn check" $result
done
"$tarn" run --policy native --limit 4MiB -- "$linked" >followed 2>&1
grep -q '^alloc: 2$' followed && grep -q '^total 4194304' followed
count "a request beyond the limit fails, and the limit is the device's size" $?

# A served program can be watched, and takes requests.
mkdir -m 700 runtime
mkfifo hold
XDG_RUNTIME_DIR=$work/runtime
export XDG_RUNTIME_DIR
TARN_WATCH=control "$tarn" run --policy compact -- "$ways" dlsym stay <hold >followed 2>said &
watched=$!
exec 3>hold
seen=1
for _ in 1 2 3 4 5 6 7 8 9 10; do
    "$tarn" watch --once --json $watched >seen.json 2>seen.err && {
        seen=0
        break
    }
    sleep 0.5
done
[ $seen -eq 0 ] || cat seen.err
count "a served program is watched" $seen
"$tarn" dump -o dumped.pickle $watched >followed 2>&1 && "$tarn" check dumped.pickle >followed 2>&1
result=$?
[ $result -eq 0 ] || cat followed
count "a served program writes a snapshot on request" $result
exec 3>&-
wait $watched
[ $? -eq 3 ] && [ ! -s said ]
count "a watched program ends as without" $?
unset XDG_RUNTIME_DIR
XDG_RUNTIME_DIR=$work/not-there TARN_WATCH=1 "$tarn" run --policy native -- "$linked" \
    >followed 2>said
[ $? -eq 3 ] && [ "$(grep -c '^tarn run: GPU 0 cannot be watched: ' said)" -eq 1 ]
count "a program that cannot be watched is served" $?

# Said once, by name.
"$tarn" run -f --record run.pickle -- "$ways" magic >followed 2>said
[ "$(grep -c cuMemAllocMagic said)" -eq 1 ] && [ "$(wc -l <said)" -eq 1 ]
count "a function that is new is named once" $?

# The summary.
"$tarn" run -- "$linked" >followed 2>said
grep -q '^tarn run: cuMemAlloc: 4 calls, 5.00 MiB at most, 5.00 MiB now$' said
count "the summary is there without --record" $?
grep -q '^tarn run: GPU 0: ' said
count "the summary explains the device's memory" $?

# The program's end is passed on, also by a signal that would have ended it without a file.
rm -f ./*.pickle
"$tarn" run --record run.pickle -- "$ways" dlsym kill >followed 2>&1
[ $? -eq 143 ]
count "SIGTERM" $?
# shellcheck disable=SC2086 # three figures
recorded "SIGTERM" run.pickle $work_figures
"$tarn" run -r none.pickle -- sh -c 'kill -TERM $$' >/dev/null 2>&1
[ $? -eq 143 ]
count "a signal" $?
"$tarn" run -r none.pickle sh -c 'exit 42'
[ $? -eq 42 ]
count "an exit code, without --" $?
"$tarn" run -r none.pickle -- ./nothing-here 2>said
[ $? -eq 127 ] && grep -q '^tarn run: cannot start ./nothing-here: ' said
count "no such program" $?
: >plain.txt
"$tarn" run -r none.pickle -- ./plain.txt 2>said
[ $? -eq 126 ]
count "a program that cannot be started" $?
# shellcheck disable=SC2016 # the program's own shell expands it
LD_PRELOAD=$driver/libcuda.so.1 "$tarn" run -r none.pickle -- sh -c 'echo "$LD_PRELOAD"' |
    grep -q "^$driver/libcuda.so.1:.*/libtarn_preload.so$"
count "LD_PRELOAD keeps what was in it" $?

# Wrong arguments.
said() { # CODE ARGUMENT...
    code=$1
    shift
    "$tarn" run "$@" >followed 2>said
    [ $? -eq "$code" ] && [ ! -s followed ] && [ "$(grep -vc '^Usage\|^ ' said)" -eq 1 ]
    result=$?
    [ $result -eq 0 ] || cat said
    count "exit code $code: run $*" $result
}
said 2 --limit 1GiB -- true
said 2 --policy best -- true
said 2 --on-signal USR1 -- true
said 2 --limit much --policy native -- true
said 2 --record run.pickle.gz -- true
said 2 --record '' -- true
said 6 --record plain.txt -- true
count_end
