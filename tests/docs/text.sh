#!/bin/sh
# SPDX-License-Identifier: MIT
# text.sh LIBRARIES PROGRAM: documents are true. Links lead to files that exist; C in docs/guide is
# either a program, which is compiled and run, or stands word for word in one of the examples; the
# snapshot that such a program writes can be read; and figures of live runs are those of the file.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/count.sh
. "$root/tests/cli/count.sh"

libraries=$1
program=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

documents() {
    (cd "$root" && find . -name '*.md' -not -path './build/*' -not -path './tests/layers/*' |
        LC_ALL=C sort)
}

links_of() { # DOCUMENT: the files that it links to, one a line
    awk '/^```/ { code = !code } !code && !/^    /' "$root/$1" |
        grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//; s/#.*//' |
        grep -v -e '^$' -e '^[a-z]*:'
}

has_target() { # DOCUMENT LINK
    [ -e "$root/$(dirname "$1")/$2" ]
}

blocks_of() { # DOCUMENT: its C blocks as $work/block.N
    rm -f "$work"/block.*
    awk -v prefix="$work/block." '
        /^```c$/ { file = prefix (++count); next }
        /^```/ { file = "" }
        file != "" { print >file }' "$1"
}

has_block() { # EXAMPLE BLOCK: the block stands in the example
    awk 'NR == FNR { block = block $0 "\n"; next } { text = text $0 "\n" }
        END { exit index(text, block) == 0 }' "$2" "$1"
}

in_examples() { # BLOCK
    for example in "$root"/examples/*.c; do
        if has_block "$example" "$1"; then
            return 0
        fi
    done
    return 1
}

# shellcheck disable=SC2086 # a list of files
run_block() { # BLOCK: compiles it as a program and runs it
    cp "$1" "$work/program.c" &&
        "${CC:-cc}" -std=c17 -Wall -Wextra -Werror -g -fno-omit-frame-pointer \
            -I "$root/include" "$work/program.c" -o "$work/program" $libraries \
            -Wl,-rpath,"$(dirname "${libraries%% *}")" &&
        (cd "$work" && PYTORCH_ALLOC_CONF='' ./program >/dev/null)
}

for document in $(documents); do
    for link in $(links_of "$document"); do
        has_target "$document" "$link"
        count "$document links to $link" $?
    done
done
! has_target ./README.md docs/no_such_file.md
count "a link to nothing is seen" $?
echo 'int no_such_line;' >"$work/block.wrong"
! in_examples "$work/block.wrong"
count "C that stands in no example is seen" $?

for document in "$root"/docs/guide/*.md; do
    blocks_of "$document"
    for block in "$work"/block.*; do
        [ -e "$block" ] || continue
        if grep -q 'int main' "$block"; then
            run_block "$block"
            count "$document: the program $(basename "$block") runs" $?
        else
            in_examples "$block"
            count "$document: $(basename "$block") stands in an example" $?
        fi
    done
done
"$program" check "$work/dump.pickle" >/dev/null
count "the guide's snapshot can be read" $?
"$program" peak --csv "$work/dump.pickle" >"$work/peak" 2>/dev/null
[ "$(grep -c requested_peak "$work/peak")" -ge 2 ]
count "the guide's snapshot has a peak" $?
! grep -E 'libtarn|tn_stack|tarn_allocator_alloc' "$work/peak"
count "its stacks begin outside the library" $?

live=$(find "$root/bench/results" -name '*-live-*.csv' | LC_ALL=C sort | tail -n 1)
python3 "$root/tests/gpu/compact/table.py" check "$live"
count "tables and the picture are those of $(basename "$live")" $?
sed 's/,compact,gpt2,peak,.*/,compact,gpt2,peak,9.9/' "$live" >"$work/other.csv"
! python3 "$root/tests/gpu/compact/table.py" check "$work/other.csv" >/dev/null
count "a figure that is another is seen" $?

count_end
