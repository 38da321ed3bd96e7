#!/bin/sh
# SPDX-License-Identifier: MIT
# lint.sh: every check of form, on both compilers. Runs all of them even if one fails, names those
# that did, and exits 1 then. Results of clang-tidy and cppcheck are kept under build/lint, so that
# a second run looks only at what changed.
set -u

cd "$(dirname "$0")/.." || exit 1
jobs=${JOBS:-$(nproc)}
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
        # shellcheck disable=SC2016 # $1 and $2 are for the inner shell
        files '*.c' '*.h' | xargs -P "$jobs" -n 1 sh -c '
            "$1" "$2" | cmp -s - "$2" || { echo "$2: layout differs, try make format"; exit 1; }
        ' sh "$formatter"
        ;;
    *) echo "skip: format check needs clang-format 14, here is $("$formatter" --version)" ;;
    esac
}

check_scripts() {
    files '*.sh' .ci/run | xargs shellcheck
}

# The tests' build is such a one where it was made for that, as in CI.
is_built_by_tests() { # gcc|clang
    compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' build/check/CMakeCache.txt 2>/dev/null)
    [ "$1" = gcc ] && grep -qs '^TARN_WERROR:BOOL=ON' build/check/CMakeCache.txt &&
        "$compiler" --version | grep -q 'Free Software Foundation'
}

build_with() { # gcc|clang: every target, warnings are errors
    if is_built_by_tests "$1"; then
        cmake --build build/check -j "$jobs" -- --quiet -k 0
        return
    fi
    # What gcc warns of depends on what it optimises; clang's warnings do not.
    type=RelWithDebInfo
    [ "$1" = gcc ] || type=Debug
    cmake -S . -B "$cache/$1" -G Ninja --log-level=WARNING \
        -DCMAKE_C_COMPILER="$1" -DCMAKE_BUILD_TYPE=$type -DTARN_CHECKS=slow \
        -DTARN_BUILD_TESTS=ON -DTARN_WERROR=ON -DTARN_LINK_PROGRAM=OFF \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null &&
        cmake --build "$cache/$1" -j "$jobs" -- --quiet -k 0
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

# A file is looked at again when it, any header, the settings or the build's flags changed.
check_tidy() {
    database=$cache/compile_commands.json
    if [ ! -s "$cache/clang/compile_commands.json" ]; then
        echo "no compile database: the build above did not get that far"
        return 1
    fi
    files_once "$cache/clang/compile_commands.json" >"$database"
    common=$({ clang-tidy --version && cat .clang-tidy "$database" && files '*.h' '*.def' |
        xargs cat; } | sha256sum | cut -c1-16)
    awk -F'"' '/"file":/ { print $4 }' "$database" | sort -u |
        xargs -P "$jobs" -n 1 tools/tidy_one.sh "$cache" "$cache/tidy" "$common"
}

check_cppcheck() {
    [ -s "$cache/compile_commands.json" ] || return 1
    # The viewer's pages as arrays: it would look at 150,000 bytes one by one, for minutes.
    cppcheck -i"$cache/clang/src/page/bundle_viewer.c" -i"$cache/clang/src/page/bundle_ranks.c" \
        --project="$cache/compile_commands.json" --cppcheck-build-dir="$cache/cppcheck" \
        -j "$jobs" --quiet --error-exitcode=1 --inline-suppr --std=c11 \
        --enable=warning,performance,portability --suppressions-list=tools/cppcheck.txt
}

step "source rules" tools/check_source.sh
step "headers compile alone" tools/check_headers.sh
step "format" check_format
step "scripts" check_scripts
step "gcc, warnings are errors" build_with gcc
step "clang, warnings are errors" build_with clang
step "clang-tidy" check_tidy
step "cppcheck" check_cppcheck

if [ -n "$failures" ]; then
    echo "lint: failed: ${failures#, }"
    exit 1
fi
echo "lint: all good"
