#!/bin/sh
# SPDX-License-Identifier: MIT
# examples.sh PROGRAM DATA WATCHED: every command has examples, help and its manual page show the
# same ones, and each works. They run in a folder of their own, where before.pickle, dump.pickle,
# dump.pickle.gz, rank*.pickle, oom.pickle, a.tsum, b.tsum, decisions.jsonl.gz and model.jsonl.gz
# are recordings; WATCHED is a program that runs meanwhile and can be watched.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
data=$2
work=$(mktemp -d)
XDG_RUNTIME_DIR=$work
export XDG_RUNTIME_DIR
TARN_WATCH=0 "$3" sim:16GiB 600 >/dev/null 2>&1 &
watched=$!
trap 'kill $watched; rm -rf "$work"' EXIT

mkdir "$work/bin" "$work/run"
ln -s "$tarn" "$work/bin/tarn"
PATH=$work/bin:$PATH
LC_ALL=C.UTF-8
export PATH LC_ALL
cd "$work/run" || exit 2
cp "$data/snapshots/cudagraph.pickle.gz" dump.pickle.gz
gunzip -c dump.pickle.gz >dump.pickle
gunzip -c "$data/snapshots/cudagraph.before.pickle.gz" >before.pickle
gunzip -c "$data/snapshots/oom.pickle.gz" >oom.pickle
cp dump.pickle rank0.pickle
cp dump.pickle rank1.pickle
cp "$data/decisions/small_default.jsonl.gz" decisions.jsonl.gz
"$tarn" summarize rank0.pickle -o a.tsum
"$tarn" summarize rank1.pickle -o b.tsum
for log in "$data/tracker/"*.jsonl.gz; do
    cp "$log" model.jsonl.gz # any of them
done
[ ! -d "$data/profiles" ] || cp "$data/profiles/"* .

examples_of() { # COMMAND
    tarn help "$1" | awk 'found { sub(/^  /, ""); print } /^Examples:$/ { found = 1 }'
}

# In the words of the page, less what roff needs.
shows_in_man() { # COMMAND
    tarn man "$1" | sed 's/\\(aq/'"'"'/g; s/\\(dq/"/g; s/\\(ti/~/g; s/\\e/\\/g; s/\\-/-/g' \
        >"$work/page"
    while IFS= read -r line; do
        grep -qxF -e "$line" "$work/page" || return 1
    done <"$work/examples"
}

for command in $(tarn help |
    awk '/^Options:/ { exit } found { print $1 } /^Commands:/ { found = 1 }'); do
    examples_of "$command" >"$work/examples"
    [ -s "$work/examples" ]
    count "$command has examples" $?
    shows_in_man "$command"
    count "the page of $command has its examples" $?
    while IFS= read -r line; do
        case $line in
        *tarn\ "$command"*) named=0 ;;
        *) named=1 ;;
        esac
        count "an example of $command is about it: $line" $named
        if [ -n "${TARN_NO_PRELOAD:-}" ] && [ "$command" = run ]; then
            skip "$line: a sanitizer's runtime must come before what is preloaded"
            continue
        fi
        bash -o pipefail -c "$line" >"$work/out" 2>"$work/err" </dev/null
        code=$?
        [ $code -eq 0 ] || { echo "    exit code $code"; cat "$work/err"; }
        count "$line" $code
    done <"$work/examples"
done

count_end
