#!/bin/sh
# SPDX-License-Identifier: MIT
# packages.sh BUILD_FOLDER: the packages that CPack makes of that build, unpacked into a folder, are
# used from there: the program, and the libraries by somebody else's project, with find_package
# and with pkg-config.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/count.sh
. "$root/tests/cli/count.sh"
build=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/consume/outside.sh
. "$root/tests/consume/outside.sh"

if [ ! -f "$build/CPackConfig.cmake" ]; then
    skip "there is no release build in $build: make build"
    count_end
    exit
fi

packages_are_made() {
    (cd "$build" && cpack --config CPackConfig.cmake -B "$work/packages") >"$work/log" 2>&1 || {
        tail -n 30 "$work/log"
        return 1
    }
}

unpack_archives() { # into $work/archives/usr
    mkdir -p "$work/archives/usr"
    for package in libtarn0 libtarn-dev tarn; do
        tar -xzf "$work/packages/tarn-$version-Linux-$package.tar.gz" -C "$work/archives/usr" \
            --strip-components=1 || return 1
    done
}

unpack_debs() { # into $work/root
    for package in libtarn0 libtarn-dev tarn; do
        dpkg-deb -x "$work/packages/${package}_${version}_"*.deb "$work/root" || return 1
    done
}

files_of() { # FOLDER
    (cd "$1" && find . ! -type d | LC_ALL=C sort)
}

same_files() {
    files_of "$work/root/usr" >"$work/debs" && files_of "$work/archives/usr" >"$work/tars" &&
        diff "$work/debs" "$work/tars"
}

depends_on() { # PACKAGE WORD
    dpkg-deb -f "$work/packages/${1}_${version}_"*.deb Depends | grep -q "$2"
}

program_works() {
    "$usr/bin/tarn" peak "$recording" >"$work/peak" && grep -q '^peak: ' "$work/peak" &&
        [ -s "$usr/share/man/man1/tarn.1" ] && [ -s "$usr/share/man/man1/tarn-peak.1" ]
}

documents_go_along() {
    cmp "$root/LICENSE" "$usr/share/doc/libtarn0/copyright" &&
        [ -f "$usr/share/doc/libtarn-dev/docs/guide/c.md" ]
}

# The examples, with the libraries as pkg-config tells.
examples_build() {
    for example in "$usr"/share/doc/libtarn-dev/examples/*.c; do
        # shellcheck disable=SC2046 # lists of options
        cc -std=c17 "$example" -o "$work/example" \
            $(pkg-config --cflags --libs tarn-tools) -ldl || return 1
    done
}

with_pkg_config() { # COMPILER STANDARD LANGUAGE
    for name in tarn tarn-tools; do
        source=use.c
        [ "$name" = tarn ] || source=use_tools.c
        # shellcheck disable=SC2046 # lists of options
        "$1" -std="$2" -x "$3" "$root/tests/consume/outside/$source" -x none -o "$work/program" \
            $(pkg-config --cflags --libs "$name") -Wl,-rpath,"$lib" && runs "$work/program" ||
            return 1
    done
}

packages_are_made
count "packages are made" $?
unpack_archives
count "archives can be unpacked" $?
usr=$work/archives/usr
if command -v dpkg-deb >/dev/null; then
    unpack_debs
    count "packages of Debian can be unpacked" $?
    same_files
    count "archives and packages of Debian have the same files" $?
    usr=$work/root/usr
    depends_on libtarn-dev "libtarn0 (= $version)"
    count "headers and libraries are of one version" $?
    if command -v dpkg-shlibdeps >/dev/null; then
        depends_on libtarn0 'libc6'
        count "packages depend on the libraries that they need" $?
    else
        skip "there is no dpkg-shlibdeps (dpkg-dev): packages do not say what they need"
    fi
else
    skip "there is no dpkg-deb: no packages of Debian"
fi
program_works
count "the program works" $?
documents_go_along
count "licence and documents go along" $?

lib=$(dirname "$(find "$usr/lib" -name 'libtarn.so')")
PKG_CONFIG_PATH=$lib/pkgconfig
export PKG_CONFIG_PATH
examples_build
count "examples build" $?
for compiler in $(compilers); do
    with_pkg_config "$compiler" c17 c
    count "pkg-config with $compiler in C17" $?
    with_pkg_config "$(cxx_of "$compiler")" c++17 c++
    count "pkg-config with $compiler in C++17" $?
    # Without optimising all of the archives again, only for time's sake.
    outside_works "$compiler" find_package -DCMAKE_PREFIX_PATH="$usr" \
        -DCMAKE_EXE_LINKER_FLAGS=-fno-lto
    count "find_package with $compiler" $?
done
count_end
