#!/bin/sh
# SPDX-License-Identifier: MIT
# outputs.sh PROGRAM SNAPSHOTS [LIBRARY]: what the program does to the files that it writes: to
# links, modes, and when a signal or a full disk ends it. Nothing half may ever be left. With
# LIBRARY preloaded there are no unnamed files.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
small=$2/tiny.pickle.gz
large=$2/gpt2_varlen.pickle.gz
no_tmpfile=${3-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
cd "$work" || exit 2

# Each way by which commands write files; $1 is the file, what follows are options.
write_convert() { "$tarn" convert "$small" "$@"; }
write_trim() { "$tarn" trim "$small" "$@"; }
write_export() {
    file=$1
    shift
    "$tarn" export --to csv "$small" -o "$file" "$@"
}
write_redirect() {
    file=$1
    shift
    "$tarn" info "$small" -o "$file" "$@"
}
write_view() {
    file=$1
    shift
    "$tarn" view "$small" -o "$file" "$@"
}
write_replay() {
    file=$1
    shift
    "$tarn" replay "$small" --save "$file" "$@"
}

mode() { stat -c %a "$1"; }
nothing_half() { [ -z "$(find . -name '*.part')" ]; }

for way in convert trim export redirect view replay; do
    rm -f ./*
    write_$way new >out 2>err
    code=$?
    [ $code -eq 0 ] && [ -s new ] && [ "$(mode new)" = 644 ]
    count "$way: a new file follows the umask: $code" $?

    chmod 600 new
    write_$way new -f >out 2>err && [ "$(mode new)" = 600 ]
    count "$way: a file that is replaced keeps its mode" $?

    ln -s nowhere dangling
    write_$way dangling >out 2>err
    [ $? -eq 6 ] && [ -L dangling ] && [ ! -e nowhere ] &&
        grep -q 'dangling is a dangling link .*--force' err
    count "$way: a link to nothing is left" $?
    write_$way dangling -f >out 2>err && [ ! -L dangling ] && [ -s dangling ] && [ ! -e nowhere ]
    count "$way: -f replaces a link to nothing" $?

    echo precious >victim
    ln -s victim link
    write_$way link >out 2>err
    [ $? -eq 6 ] && [ -L link ] && [ "$(cat victim)" = precious ]
    count "$way: a link to a file is left" $?
    write_$way link -f >out 2>err && [ ! -L link ] && [ -s link ] && [ "$(cat victim)" = precious ]
    count "$way: -f replaces a link, not what it leads to" $?

    rm -f link
    ln -s /dev/null link
    write_$way link >out 2>err && [ -L link ]
    count "$way: a link to a device is written through" $?
    nothing_half
    count "$way: no draft is left" $?
done

rm -f ./*
mkdir folder
"$tarn" convert "$small" folder -f 2>err
[ $? -eq 6 ] && [ -d folder ] && grep -q 'folder: Is a directory' err
count "a folder is no file" $?
rmdir folder

"$tarn" export --to csv "$small" -o /dev/stdout >out && "$tarn" export --to csv "$small" >same &&
    cmp -s out same && [ -L /dev/stdout ]
count "/dev/stdout is standard output, also where that is a file" $?
"$tarn" convert "$small" - >out && "$tarn" info out >same && [ ! -e - ]
count "convert - writes to standard output" $?

# A limit on files: by a signal, and where that is ignored by the write that fails.
"$tarn" export --to csv "$small" -o file 2>err && cp file old
( # a shell of its own, whose words on the end of the program nobody reads
    # shellcheck disable=SC3045 # dash and bash have it
    ulimit -c 0
    ulimit -f 1
    sh -c '"$1" export --to json "$2" -o file -f; exit $?' sh "$tarn" "$large"
) >out 2>err
[ $? -eq 153 ] && cmp -s file old && nothing_half
count "a file that is too large by a signal" $?
(
    trap '' XFSZ
    ulimit -f 1
    exec "$tarn" export --to json "$large" -o file -f
) 2>err
[ $? -eq 6 ] && cmp -s file old && nothing_half && grep -q 'file: File too large' err
count "a file that is too large" $?

# Whether the process has a draft: a file without a name, which the system shows as "#N (deleted)",
# or one with a name.
drafts() { # PROCESS
    for draft in ./*.part; do
        [ -e "$draft" ] && return 0
    done
    [ -z "$how" ] && find "/proc/$1/fd" -lname "$work/#*(deleted)" 2>/dev/null | grep -q .
}

# Each command that writes a file, for as long as possible.
slow_export() { exec "$tarn" export --to json "$large" -o file.json -f; }
slow_convert() { exec "$tarn" convert "$large" file.json -f; }

# The draft is there for some milliseconds: a signal may come too late, but not each time.
signalled() { # COMMAND SIGNAL NUMBER
    tries=0
    while [ $tries -lt 50 ]; do
        tries=$((tries + 1))
        slow_"$1" 2>err &
        writer=$!
        while ! drafts $writer && kill -0 $writer 2>/dev/null; do :; done
        kill -"$2" $writer 2>/dev/null
        wait $writer 2>/dev/null
        code=$?
        nothing_half || return 1
        cmp -s file.json old && [ $code -eq $((128 + $3)) ] && return 0
        cmp -s file.json old || cmp -s file.json whole || return 1
        cp old file.json
    done
    return 1
}

every_signal() { # SIGNALS: pairs of name and number
    for command in export convert; do
        for signal in "$@"; do
            cp old file.json
            signalled $command "${signal%=*}" "${signal#*=}" && [ ! -s err ]
            count "$command: SIG${signal%=*} leaves no draft and the old file$how" $?
        done
    done
}

how=
"$tarn" convert "$large" whole.json && mv whole.json whole
every_signal INT=2 TERM=15 HUP=1 PIPE=13
if [ -n "$no_tmpfile" ]; then
    how=", without unnamed files"
    LD_PRELOAD=$no_tmpfile
    export LD_PRELOAD
    every_signal INT=2 TERM=15 HUP=1 PIPE=13
    unset LD_PRELOAD
fi

count_end
