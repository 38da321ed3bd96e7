#!/bin/sh
# SPDX-License-Identifier: MIT
# lint.sh: every check of form, on both compilers. Runs all of them even if one fails, names those
# that did, and exits 1 then. Results of clang-tidy and cppcheck are kept under build/lint, so that
# a second run looks only at what changed.
#
# ANALYZER_NODES: states after which clang's analyzer gives up on a function; 0: it is left out, as
# in CI. It takes nine tenths of clang-tidy's time, most of it on the few functions that reach its
# own limit of 225,000. That limit is for every night (nightly.sh). With 10,000 it no longer sees
# what a called function sets.
set -u

cd "$(dirname "$0")/.." || exit 1
jobs=${JOBS:-$(nproc)}
ANALYZER_NODES=${ANALYZER_NODES:-${TARN_BY_DAY:+0}}
ANALYZER_NODES=${ANALYZER_NODES:-20000}
export ANALYZER_NODES
cache=build/lint
mkdir -p "$cache/tidy" "$cache/cppcheck"
failures=""

step() { # NAME COMMAND...
    name=$1
    shift
    echo "lint: $name"
    "$@" || failures="$failures, $name"
}

files() { # PATTERN...: files of the project, bad samples left out
    git ls-files --cached --others --exclude-standard -- "$@" ':!tests/layers' | sort -u |
        while read -r file; do [ ! -f "$file" ] || echo "$file"; done
}

check_format() {
    formatter=$(command -v clang-format-14 || command -v clang-format)
    case $("$formatter" --version) in
    *"version 14."*)
        # Many files at a time: the tool takes longer to start than for a file.
        files '*.c' '*.h' | xargs -P "$jobs" -n 50 "$formatter" --dry-run -Werror ||
            { echo "layout differs, try make format" && return 1; }
        ;;
    *) echo "skip: format check needs clang-format 14, here is $("$formatter" --version)" ;;
    esac
}

check_scripts() {
    files '*.sh' .ci/run | xargs shellcheck
}

# The tests' build is such a one where it was made for that, as in CI.
is_built_by_tests() {
    compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' build/check/CMakeCache.txt 2>/dev/null)
    grep -qs '^TARN_WERROR:BOOL=ON' build/check/CMakeCache.txt &&
        "$compiler" --version | grep -q 'Free Software Foundation'
}

configure_for() { # gcc|clang [setting...]: a build folder in which warnings are errors
    compiler=$1
    shift
    cmake -S . -B "$cache/$compiler" -G Ninja --log-level=WARNING \
        -DCMAKE_C_COMPILER="$compiler" -DTARN_CHECKS=slow \
        -DTARN_BUILD_TESTS=ON -DTARN_WERROR=ON -DTARN_LINK_PROGRAM=OFF \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "$@" >/dev/null
}

# Optimised: what gcc warns of depends on that.
build_with_gcc() {
    if is_built_by_tests; then
        cmake --build build/check -j "$jobs" -- --quiet -k 0
        return
    fi
    configure_for gcc -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
        cmake --build "$cache/gcc" -j "$jobs" -- --quiet -k 0
}

# Each file once, with the flags of the first target that has it: clang-tidy 14 would look at it for
# every one of them, and its second look takes every va_list for uninitialized.
files_once() { # COMPILE_DATABASE
    awk '/^\{/ { entry = "" }
        /^[{} ]/ { entry = entry $0 "\n" }
        /"file":/ { wanted = !seen[$0]++ }
        /^\}/ && wanted {
            sub(/\},?\n$/, "}", entry)
            printf "%s%s", separator, entry
            separator = ",\n"
        }
        BEGIN { print "[" }
        END { print "\n]" }' "$1"
}

database=$cache/compile_commands.json
make_database() {
    rm -f "$database"
    configure_for clang -DCMAKE_BUILD_TYPE=Debug &&
        cmake --build "$cache/clang" -j "$jobs" --target page_sources -- --quiet &&
        files_once "$cache/clang/compile_commands.json" >"$database"
}

# Warnings of clang are among what clang-tidy reports, with the same flags: nothing is compiled for
# them a second time. A file is looked at again when it, any header, the settings or the build's
# flags changed.
check_tidy() {
    [ -s "$database" ] || return 1
    common=$({ clang-tidy --version && echo "$ANALYZER_NODES" && cat .clang-tidy "$database" &&
        files '*.h' '*.def' | xargs cat; } | sha256sum | cut -c1-16)
    awk -F'"' '/"file":/ { print $4 }' "$database" | sort -u >"$cache/tidy_files"
    # A file that uses va_list, also in a macro (tests/support/failing.h), by itself: clang-tidy 14
    # takes each for uninitialized after its first file. The others eight at a time, because it
    # takes as long to start as for a small file.
    {
        xargs grep -l 'va_list\|FAILING_SYSCALL' <"$cache/tidy_files" | tee "$cache/tidy_alone"
        grep -vxFf "$cache/tidy_alone" "$cache/tidy_files" | xargs -n 8
    } | xargs -P "$jobs" -L 1 tools/tidy.sh "$cache" "$cache/tidy" "$common"
}

# One process: two (-j 2) took seven times as long. It runs beside the others.
check_cppcheck() {
    [ -s "$database" ] || return 1
    # The viewer's pages as arrays: it would look at 150,000 bytes one by one, for minutes.
    cppcheck -i"$cache/clang/src/page/bundle_viewer.c" -i"$cache/clang/src/page/bundle_ranks.c" \
        --project="$database" --cppcheck-build-dir="$cache/cppcheck" --quiet \
        --error-exitcode=1 --inline-suppr --std=c11 \
        --enable=warning,performance,portability --suppressions-list=tools/cppcheck.txt
}

cppcheck_ends() {
    status=0
    wait "$cppcheck" || status=$?
    cat "$cache/cppcheck.log"
    return $status
}

step "what is compiled, and how" make_database
if [ -z "${TARN_BY_DAY:-}" ]; then
    check_cppcheck >"$cache/cppcheck.log" 2>&1 &
    cppcheck=$!
fi
step "source rules" tools/check_source.sh
step "headers compile alone" tools/check_headers.sh
step "format" check_format
step "scripts" check_scripts
step "gcc, warnings are errors" build_with_gcc
step "clang-tidy and clang, warnings are errors" check_tidy
[ -n "${TARN_BY_DAY:-}" ] || step "cppcheck" cppcheck_ends

if [ -n "$failures" ]; then
    echo "lint: failed: ${failures#, }"
    exit 1
fi
echo "lint: all good"
