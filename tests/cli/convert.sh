#!/bin/sh
# SPDX-License-Identifier: MIT
# convert.sh PROGRAM SNAPSHOTS: recorded snapshots to the other forms and back. Where there is a
# Python, its own reader must find the same in all of them.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

same_stats() { # FILE FILE
    "$tarn" stats "$1" >"$work/left" && "$tarn" stats "$2" >"$work/right" &&
        cmp -s "$work/left" "$work/right"
}

python_agrees() { # RECORDED PICKLE JSON
    python3 - "$@" <<'END'
import gzip, json, pickle, sys

def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

recorded = pickle.load(gzip.open(sys.argv[1]))
ours = pickle.load(open(sys.argv[2], "rb"))
assert ours == recorded, "the pickle differs"
assert json.load(open(sys.argv[3])) == plain(recorded), "the JSON differs"
END
}

for name in cudagraph multistream oom resnet_sizes tiny tiny.before; do
    file=$data/$name.pickle.gz
    "$tarn" convert -f "$file" "$work/a.pickle" && "$tarn" convert -f "$file" "$work/a.json" &&
        "$tarn" convert -f "$work/a.json" "$work/b.pickle"
    count "$name is converted" $?
    same_stats "$file" "$work/a.pickle" && same_stats "$file" "$work/a.json" &&
        same_stats "$file" "$work/b.pickle"
    count "$name has the same statistics in every form" $?
    if command -v python3 >/dev/null 2>&1; then
        python_agrees "$file" "$work/a.pickle" "$work/a.json" &&
            python_agrees "$file" "$work/b.pickle" "$work/a.json"
        count "Python finds the same in $name" $?
    else
        skip "there is no python3"
    fi
done

"$tarn" convert "$data/tiny.pickle.gz" "$work/a.pickle" 2>"$work/said"
[ $? -eq 6 ] && grep -q "exists and is not replaced" "$work/said"
count "a file that exists" $?
"$tarn" convert "$work/none.pickle" "$work/c.pickle" 2>/dev/null
[ $? -eq 6 ] && [ ! -e "$work/c.pickle" ]
count "a file that is not there" $?
"$tarn" convert "$data/tiny.pickle.gz" "$work/none/c.pickle" 2>"$work/said"
[ $? -eq 6 ] && grep -q "No such file" "$work/said"
count "a folder that is not there" $?

# Every setting that there is, as a name and in the text of the settings.
names=$("$tarn" config --json | sed -n '1,/"data"/d; s/.*"name": "\(.*\)",/\1/p')
# Snapshots have keys of their own for these three.
others=$(echo "$names" | grep -v 'roundup\|garbage\|expandable')
# shellcheck disable=SC2086
printf '{"segments":[],"device_traces":[],"allocator_settings":{"%s":"%s"%s}}' \
    PYTORCH_CUDA_ALLOC_CONF "$(printf '%s:1,' $names)" \
    "$(printf ',"%s":1' $others)" >"$work/settings.json"
"$tarn" trim --anonymize "$work/settings.json" "$work/anonymous.json" && [ -n "$names" ] &&
    ! grep -q 'other\|setting[0-9]' "$work/anonymous.json"
count "trim --anonymize knows every setting" $?

count_end
