#!/bin/sh
# SPDX-License-Identifier: MIT
# shells.sh PROGRAM: what shells, manual page readers and pagers make of what the program writes for
# them. What is not installed is skipped.
set -u
# shellcheck source=tests/cli/count.sh
. "$(dirname "$0")/count.sh"

tarn=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LC_ALL=C.UTF-8
export LC_ALL

has() { # COMMAND: whether it is there; a skipped case if not
    command -v "$1" >/dev/null 2>&1 && return 0
    skip "there is no $1"
    return 1
}

says() { # NAME GOT WANTED
    if [ "$2" != "$3" ]; then
        echo "    got: $2"
        echo "    wanted: $3"
        count "$1" 1
    else
        count "$1" 0
    fi
}

# ---- completion ----

mkdir "$work/files" "$work/bin"
ln -s "$tarn" "$work/bin/tarn"
PATH=$work/bin:$PATH
export PATH
cd "$work/files" || exit 2
: >dump.pickle
: >dumb.txt

bash_completes() { # WORD...: what bash would offer for the last one
    bash -c '
        source <("$0" completion bash) || exit 1
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _tarn
        printf "%s\n" "${COMPREPLY[@]}"' "$tarn" "$@" 2>&1 | sort | tr '\n' ' '
}

if has bash; then
    "$tarn" completion bash >"$work/tarn.bash" && bash -n "$work/tarn.bash"
    count "bash accepts its script" $?
    says "commands" "$(bash_completes tarn pe)" "peak "
    says "commands after an option" "$(bash_completes tarn --color never comp)" \
        "compare completion "
    says "options of the program" "$(bash_completes tarn --vers)" "--version "
    says "options of a command" "$(bash_completes tarn oom --dev)" "--device --device-total "
    says "options of every command" "$(bash_completes tarn oom --no-p)" "--no-pager "
    says "options of commands that read" "$(bash_completes tarn info --stric)" "--strict "
    says "choices" "$(bash_completes tarn top --sort r)" "requested "
    says "choices behind =" "$(bash_completes tarn top --sort = r)" "requested "
    says "choices behind = from the start" "$(bash_completes tarn --color =)" "always auto never "
    says "names of files" "$(bash_completes tarn info dum)" "dumb.txt dump.pickle "
    says "names of files of an option" "$(bash_completes tarn info -o dump)" "dump.pickle "
    says "nothing for a number" "$(bash_completes tarn top -n '')" " "
    says "commands as arguments" "$(bash_completes tarn help segm)" "segment_plot segments "
    says "topics" "$(bash_completes tarn explain frag)" "fragmentation "
    says "shells" "$(bash_completes tarn completion z)" "zsh "
    says "either form of a name" "$(bash_completes tarn trace-plot --seg)" "--segments "
fi
if has zsh; then
    "$tarn" completion zsh >"$work/_tarn" && zsh -n "$work/_tarn"
    count "zsh accepts its script" $?
    zsh -f -c 'autoload -U compinit && compinit -u -d "$1/dump" && source "$1/_tarn" &&
        [[ ${_comps[tarn]} == _tarn ]]' zsh "$work" >"$work/out" 2>&1
    count "zsh knows whom to ask" $?
fi
if has fish; then
    "$tarn" completion fish >"$work/tarn.fish" && fish --no-execute "$work/tarn.fish"
    count "fish accepts its script" $?
    says "fish: commands" "$(HOME=$work fish -N -c "source $work/tarn.fish
        complete -C 'tarn pea'" | cut -f1)" "peak"
    says "fish: choices" "$(HOME=$work fish -N -c "source $work/tarn.fish
        complete -C 'tarn top --sort re'" | cut -f1)" "requested"
fi

# ---- manual pages ----

mkdir "$work/man" && "$tarn" man --folder "$work/man"
count "all pages are written" $?
[ "$(find "$work/man" -name '*.1' | wc -l)" -gt 10 ] && cmp -s "$work/man/tarn-peak.1" - <<END
$("$tarn" man peak)
END
count "they are those that the command prints" $?
"$tarn" man --folder "$work/none" 2>"$work/err"
[ $? -eq 6 ] && grep -q "No such file" "$work/err"
count "a folder that is not there" $?

# No date: the pages are the same whenever they are written.
if has mandoc; then
    mandoc -T lint -W warning "$work/man/"*.1 | grep -v 'missing date' >"$work/out"
    [ ! -s "$work/out" ] || cat "$work/out"
    [ ! -s "$work/out" ]
    count "mandoc finds nothing" $?
fi
if has groff; then
    for page in "$work/man/"*.1; do
        { groff -ww -man -Tutf8 "$page" >/dev/null; } 2>&1
    done >"$work/out"
    [ ! -s "$work/out" ] || cat "$work/out"
    [ ! -s "$work/out" ]
    count "groff warns of nothing" $?
fi
if has man; then
    for page in "$work/man/"*.1; do
        { man --warnings -l "$page" >/dev/null; } 2>&1
    done >"$work/out"
    [ ! -s "$work/out" ]
    count "man warns of nothing" $?
fi

# ---- pagers: what happens on a terminal ----

on_terminal() { # COMMAND LINE
    TERM=xterm script -qec "$1" /dev/null </dev/null 2>/dev/null | tr -d '\r'
}

if has script && [ "$(on_terminal 'echo yes')" = yes ]; then
    says "\$PAGER gets what is long" "$(PAGER='sed s/tarn/paged/' on_terminal 'tarn help help' |
        head -n 1)" "usage: paged help [OPTION...] [COMMAND]"
    says "--no-pager" "$(PAGER='sed s/tarn/paged/' on_terminal 'tarn help --no-pager help' |
        head -n 1)" "usage: tarn help [OPTION...] [COMMAND]"
    says "no pager" "$(PAGER='' on_terminal 'tarn version')" "tarn ${TARN_VERSION:-0.1.0}"
    says "a pager that is not there" "$(PAGER=/nonexistent/pager \
        on_terminal 'tarn help help; echo $?' | tail -n 1)" "0"

    if has man; then
        on_terminal 'MANPAGER=cat tarn man peak' | grep -q 'USER COMMANDS\|User Commands'
        count "manual pages on a terminal are laid out" $?
    fi
else
    skip "pagers: there is no script, or no pseudo-terminal to be had"
fi
says "no pager without a terminal" "$(PAGER='sed s/tarn/paged/' tarn help help | head -n 1)" \
    "usage: tarn help [OPTION...] [COMMAND]"

count_end
