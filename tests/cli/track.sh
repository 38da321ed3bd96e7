#!/bin/sh
# SPDX-License-Identifier: MIT
# track.sh PROGRAM DATA: what `tarn track` makes of recorded logs is what PyTorch's tracker printed
# when they were recorded, byte for byte; hostile logs end with their exit code and one sentence.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
data=$2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

# options NAME REST...: of the section "## NAME REST..." of a display file.
options() {
    case $1 in
    display_snapshot) echo "--display $2 --units $3" ;;
    *) echo "--modulewise --depth ${2#depth=} --units $3" ;;
    esac
    case $4 in
    tabulate=True) echo --tabulate ;;
    esac
}

version=$("$tarn" version | awk 'NR == 1 { print $2 }')
head="\"schema\": \"tarn.track/1\", \"tool\": {\"name\": \"tarn\", \"version\": \"$version\"}"

for log in "$data"/*.jsonl.gz; do
    name=$(basename "$log" .jsonl.gz)

    # PyTorch's result lacks what names the document, and the last newline.
    "$tarn" track "$log" --json >"$tmp/result" && [ "$(wc -l <"$tmp/result")" -eq 1 ] &&
        gzip -dc "$data/$name.result.json.gz" | sed "s|^{|{$head, |" >"$tmp/expected" &&
        [ "$(cat "$tmp/expected")" = "$(cat "$tmp/result")" ]
    count "$name: results" $?

    "$tarn" track "$log" --after >"$tmp/after" &&
        [ "$(wc -l <"$tmp/after")" -eq "$(gzip -dc "$log" | wc -l)" ] &&
        gzip -dc "$log" | paste - "$tmp/after" | awk -F '\t' '
            match($1, /"after": .*/) {
                recorded = substr($1, RSTART + 9, RLENGTH - 10)
                if (recorded != $2) { exit 1 }
                compared++
            }
            END { exit compared > 300 ? 0 : 1 }'
    count "$name: a snapshot after each event" $?

    gzip -dc "$data/$name.display.txt.gz" >"$tmp/expected"
    grep '^## ' "$tmp/expected" | while read -r hashes section; do
        echo "$hashes $section"
        # shellcheck disable=SC2046,SC2086
        "$tarn" track "$log" $(options $section) || exit 1
    done >"$tmp/shown" && cmp "$tmp/shown" "$tmp/expected"
    count "$name: displays" $?

    gzip -dc "$log" | "$tarn" track - --json | cmp - "$tmp/result"
    count "$name: from standard input" $?

    "$tarn" track "$log" --tree --iterations --json --everything >"$tmp/all" &&
        grep -q 'with children' "$tmp/all" && grep -q '^iteration' "$tmp/all" &&
        grep -q '"owners": \[{"module"' "$tmp/all"
    count "$name: tree, iterations, everything" $?
done

# says PATTERN: whether standard error is that sentence.
says() {
    # shellcheck disable=SC2254
    case "$(cat "$tmp/err")" in
    "tarn track: "$1) ;;
    *) false ;;
    esac
}

# refuse NAME EXIT PATTERN: of the log in $tmp/log; the pattern is for the one line on stderr.
refuse() {
    "$tarn" track "$tmp/log" >"$tmp/out" 2>"$tmp/err"
    [ $? -eq "$2" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && [ ! -s "$tmp/out" ] && says "$3"
    status=$?
    [ $status -eq 0 ] || cat "$tmp/err"
    count "$1" $status
}

log=$data/conv_cpu.jsonl.gz
gzip -dc "$log" | head -c 20000 >"$tmp/log"
refuse "cut off" 5 "line 99, the log ends in the middle of an event"
head -c 3000 "$log" >"$tmp/log"
refuse "packed and cut off" 5 "line *, the packed data of * ends early"
gzip -dc "$log" | sed '/"id": 31,/p' >"$tmp/log"
refuse "deleted twice" 3 \
    "line 319, deletion of storage 31: it is unknown: never created, or already deleted"
echo '{"op": "create", "storages": [[1, -8, "cpu"]], "category": "Temp"}' >"$tmp/log"
refuse "negative size" 3 \
    "line 1, create: a storage is not ?id, bytes, device? with numbers of at least 0"
gzip -dc "$log" | sed '/"op": "pre_forward"/d' >"$tmp/log"
refuse "left, not entered" 3 \
    "line 38, leaving of module *: it is unknown: never entered, or destroyed"
: >"$tmp/log"
refuse "empty" 3 "the log has no events"
printf 'PK\003\004' >"$tmp/log"
refuse "something else" 3 "line 1, not JSON: *"

gzip -dc "$log" | sed '5s/"Total": [0-9]*/"Total": 7/' | "$tarn" track - >"$tmp/out" 2>"$tmp/err"
[ $? -eq 1 ] && grep -q '^tarn track: 1 of [0-9]* recorded snapshots differ: line 5, classify: ' \
    "$tmp/err" && grep -q 'with children' "$tmp/out"
count "a difference is found, and the results are shown" $?

count_end
