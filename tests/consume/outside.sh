# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # root and work
# Read by the scripts beside it: somebody else's project (outside/), built with each compiler.
# They set $root, the root of tarn, and $work, a folder of their own.

version=$(sed -n 's/^project(tarn VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
recording=$root/tests/data/snapshots/tiny.pickle.gz

# The C compilers that are here; for each, C++'s of the same family.
compilers() {
    for compiler in gcc clang; do
        command -v "$compiler" >/dev/null && echo "$compiler"
    done
}

cxx_of() { # COMPILER
    case $1 in
    gcc) echo g++ ;;
    *) echo clang++ ;;
    esac
}

runs() { # PROGRAM
    [ "$("$1" "$recording" 2>"$work/said")" = "tarn $version" ] || {
        cat "$work/said"
        return 1
    }
}

# Configures and builds the project in $work/NAME, and runs all its programs.
outside_works() { # COMPILER WAY [option of cmake]...
    compiler=$1
    way=$2
    shift 2
    folder=$work/$way-$compiler
    {
        cmake -S "$root/tests/consume/outside" -B "$folder" -G Ninja -DWAY="$way" \
            -DCMAKE_C_COMPILER="$compiler" -DCMAKE_CXX_COMPILER="$(cxx_of "$compiler")" "$@" &&
            cmake --build "$folder"
    } >"$work/log" 2>&1 || {
        tail -n 30 "$work/log"
        return 1
    }
    for program in "$folder"/programs/*; do
        runs "$program" || return 1
    done
}
