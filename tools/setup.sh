#!/bin/sh
# SPDX-License-Identifier: MIT
# setup.sh [build|test|packages|viewer|models|proofs|mutation|lint|sanitize|docs|bench]...:
# installs what those jobs need and is missing here.
#
# It looks for the tools and libraries themselves, so it does not matter how they got here. What is
# missing comes from apt-get when we are root or sudo asks for no password; otherwise the command to
# type is printed and the exit status is 1. Nothing missing: silent and quick.
set -eu

missing=""

need() { # PACKAGE: add it to the list once
    case " $missing " in
    *" $1 "*) ;;
    *) missing="$missing $1" ;;
    esac
}

has() {
    command -v "$1" >/dev/null 2>&1
}

need_tool() { # COMMAND PACKAGE
    has "$1" || need "$2"
}

need_libs() { # pkg-config modules; all their packages are listed if one is missing
    if ! has pkg-config || ! pkg-config --exists "$@"; then
        for module in "$@"; do
            case $module in
            zlib) need zlib1g-dev ;;
            *) need "lib${module#lib}-dev" ;;
            esac
        done
    fi
}

need_header() { # HEADER PACKAGE
    echo "#include <$1>" | "${CC:-cc}" -E - >/dev/null 2>&1 || need "$2"
}

need_python() { # MODULE, of the package with its name
    python3 -c "import $1" 2>/dev/null || /usr/bin/python3 -c "import $1" 2>/dev/null ||
        need "python3-$1"
}

need_for_compiler() {
    if ! has "${CC:-cc}" && ! has gcc && ! has clang; then
        need gcc
        need libc6-dev
    fi
}

need_for_build() {
    need_for_compiler
    need_tool cmake cmake
    need_tool ninja ninja-build
    need_tool pkg-config pkg-config
    need_tool esbuild esbuild
    need_libs zlib libzstd jansson libdw sqlite3
    pkg-config --exists ncursesw 2>/dev/null || need libncurses-dev
    pkg-config --exists libmicrohttpd 2>/dev/null || need libmicrohttpd-dev
    need_header sys/sdt.h systemtap-sdt-dev
}

need_for_test() {
    need_for_build
    need_libs cmocka
    need_tool mold mold # links hundreds of test programs in half the time
    if ! has mpicc || ! has mpirun; then # tarn-mpi; MPICH would do as well
        need libopenmpi-dev
        need openmpi-bin
    fi
    need_tool g++ g++
    # opened at run time, by its file's name
    ls /usr/lib/*/libunwind.so.8 >/dev/null 2>&1 || need libunwind8
    need_tool python3 python3
    need_python jsonschema
    need_python pyte
    wheel='import setuptools, wheel, ensurepip, pip'
    if ! /usr/bin/python3 -c "$wheel" 2>/dev/null && ! python3 -c "$wheel" 2>/dev/null; then
        for package in pip setuptools venv wheel; do # tests/python/install.sh
            need "python3-$package"
        done
    fi
}

need_for_packages() { # more of the tests: packages, the ABI, another processor
    need_for_test
    need_tool dpkg-shlibdeps dpkg-dev
    need_tool file file
    need_tool abidiff abigail-tools
    if [ -z "${TARN_BY_DAY:-}" ] &&
        ! echo '#include <stdlib.h>' | aarch64-linux-gnu-gcc -E - >/dev/null 2>&1; then
        need gcc-aarch64-linux-gnu
        need libc6-dev-arm64-cross
    fi
}

need_for_viewer() {
    need_for_build
    has chromium-browser || need_tool chromium chromium
    # Faster for most of the tests; not every distribution has it.
    if ! has chromium-headless-shell && apt-cache show chromium-headless-shell >/dev/null 2>&1; then
        need chromium-headless-shell
    fi
    need_tool node nodejs
    need_tool npm npm
    if ! echo 'int main(void) { return 0; }' |
        clang-14 --target=wasm32-wasi -x c - -o /dev/null 2>/dev/null; then
        for package in clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32; do # of empty pages
            need "$package"
        done
    fi
    [ -n "${TARN_BY_DAY:-}" ] || need_tool firefox-esr firefox-esr
}

need_for_models() {
    need_for_compiler
    need_tool spin spin
}

need_for_proofs() {
    need_for_compiler
    need_tool frama-c frama-c-base
    need_tool why3 why3
    need_tool z3 z3
    need_tool cvc4 cvc4
}

need_for_mutation() {
    need_for_test
    if ! /usr/bin/python3 -c 'import clang.cindex' 2>/dev/null; then
        need python3-clang-14
        need libclang1-14
    fi
}

need_for_lint() {
    need_for_test
    for tool in gcc clang clang-tidy cppcheck shellcheck; do
        need_tool "$tool" "$tool"
    done
    has clang-format-14 || need_tool clang-format clang-format
}

need_for_sanitize() {
    need_for_test
    need_tool gcc gcc
    if ! has clang; then
        need clang # its run-time library is named by version: that is for the second pass
    elif [ -z "$(find "$(clang -print-resource-dir)/" -name '*clang_rt.fuzzer*.a')" ]; then
        need "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
    fi
}

need_for_docs() {
    need_tool doxygen doxygen
}

need_for_bench() { # other allocators to compare with: `make bench` leaves out what is missing
    need_for_build
    need_tool g++ g++
    need_header mimalloc.h libmimalloc-dev
    need_header jemalloc/jemalloc.h libjemalloc-dev
    need_header vulkan/vulkan.h libvulkan-dev
}

install_missing() {
    if ! has apt-get; then
        echo "setup: missing (Debian names):$missing" >&2
        echo "setup: there is no apt-get here, please install them yourself" >&2
        return 1
    fi
    if [ "$(id -u)" -eq 0 ]; then
        as_root="env"
    elif has sudo && sudo -n true 2>/dev/null; then
        as_root="sudo -n env"
    else
        echo "setup: missing:$missing" >&2
        echo "setup: please type" >&2
        echo "    sudo apt-get update && sudo apt-get install --no-install-recommends$missing" >&2
        return 1
    fi
    echo "setup: installing$missing"
    $as_root apt-get -q update
    # shellcheck disable=SC2086 # a list of words
    $as_root DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $missing
}

check_cmake() {
    version=$(cmake --version | awk 'NR == 1 { print $3 }')
    if ! echo "$version" | awk -F. '{ exit !($1 > 3 || ($1 == 3 && $2 >= 25)) }'; then
        echo "setup: cmake 3.25 or newer is needed, this is $version" >&2
        return 1
    fi
}

[ $# -gt 0 ] || set -- build
for job in "$@"; do
    case $job in
    build | test | packages | viewer | models | proofs | mutation | lint | sanitize | docs | \
        bench) ;;
    *)
        echo "usage: tools/setup.sh" \
            "[build|test|packages|viewer|models|proofs|mutation|lint|sanitize|docs|bench]..." >&2
        exit 2
        ;;
    esac
done
for pass in first second check; do
    missing=""
    for job in "$@"; do
        "need_for_$job"
    done
    [ -n "$missing" ] || break
    if [ "$pass" = check ]; then
        echo "setup: installed, and still not found:$missing" >&2
        exit 1
    fi
    install_missing
done
case " $* " in
" docs " | " models " | " proofs ") ;; # the only jobs without CMake
*) check_cmake ;;
esac
