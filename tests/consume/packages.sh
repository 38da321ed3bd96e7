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

finds_dependencies() {
    command -v dpkg-shlibdeps >/dev/null && command -v file >/dev/null
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
        [ -f "$usr/share/doc/libtarn-dev/docs/guide/c.md" ] &&
        [ -s "$usr/share/doc/libtarn-dev/adaptors/cupy_tarn.py" ] &&
        [ -s "$usr/share/man/man3/tarn_allocator.3" ] &&
        [ -s "$usr/share/man/man3/tarn_allocator_alloc.3" ]
}

# The examples, with the libraries as pkg-config tells and no other option that they need.
examples_build() {
    for example in "$usr"/share/doc/libtarn-dev/examples/*.c; do
        # shellcheck disable=SC2046 # lists of options
        cc -std=c17 -Wall -Wextra -Werror "$example" -o "$work/example" \
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

# A root with nothing in it but the packages and what they depend on, as installed on this machine.

closure() { # PACKAGE...: these and what they need, of the packages that are installed
    echo "$@" | tr ' ' '\n' >"$work/closure"
    while :; do
        sort -u "$work/closure" >"$work/before"
        # shellcheck disable=SC2046 # a list of names
        dpkg-query -W -f '${Depends}, ${Pre-Depends}\n' $(cat "$work/before") 2>/dev/null |
            tr ',' '\n' | sed 's/|.*//; s/(.*//; s/:any//; s/ //g' | grep . |
            cat - "$work/before" | sort -u >"$work/closure"
        cmp -s "$work/before" "$work/closure" && break
    done
    cat "$work/closure"
}

needed_by() { # PACKAGE...: the names in Depends
    for package in "$@"; do
        dpkg-deb -f "$work/packages/${package}_${version}_"*.deb Depends
    done | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/ //g' | grep -vx 'libtarn0' | sort -u
}

bare_root_is_made() {
    bare=$work/bare
    mkdir -p "$bare/usr/lib" "$bare/usr/lib64" "$bare/usr/bin" "$bare/dev" "$bare/tmp"
    ln -s usr/lib "$bare/lib" && ln -s usr/lib64 "$bare/lib64" && ln -s usr/bin "$bare/bin"
    # shellcheck disable=SC2046 # a list of names
    for package in $(closure $(needed_by libtarn0 tarn)); do
        dpkg-query -L "$package" 2>/dev/null
    done | sort -u | while read -r file; do
        [ -d "$file" ] && [ ! -L "$file" ] || echo ".$file"
    done | grep -v '^./usr/share/' >"$work/list"
    tar -C / -cf - -T "$work/list" 2>/dev/null | tar -C "$bare" -xf - &&
        for package in libtarn0 tarn; do
            dpkg-deb -x "$work/packages/${package}_${version}_"*.deb "$bare" || return 1
        done
}

into_root() { # COMMAND...
    if [ "$(id -u)" -eq 0 ]; then
        chroot "$work/bare" "$@"
    else
        unshare --user --map-root-user chroot "$work/bare" "$@"
    fi
}

works_in_root() {
    cp "$recording" "$work/bare/tmp/recording.gz" &&
        cc -std=c17 -I "$work/root/usr/include" "$root/tests/consume/outside/use.c" \
            -o "$work/bare/tmp/use" -L "$lib" -ltarn -Wl,-rpath-link,"$lib" &&
        [ "$(into_root /tmp/use)" = "tarn $version" ] &&
        into_root /usr/bin/tarn peak /tmp/recording.gz >"$work/peak" &&
        grep -q '^peak: ' "$work/peak" && [ ! -e "$work/bare/usr/lib/gcc" ]
}

# SQLite is recommended: the root has none.
names_sqlite() {
    said=0
    into_root /usr/bin/tarn export --to sqlite /tmp/recording.gz -o /tmp/out.db \
        >"$work/export" 2>&1 || said=$?
    [ "$said" -ne 0 ] && grep -q 'libsqlite3-0' "$work/export" && [ ! -e "$work/bare/tmp/out.db" ]
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
    if finds_dependencies; then
        depends_on libtarn0 'libc6'
        count "packages depend on the libraries that they need" $?
    else
        skip "dpkg-shlibdeps (dpkg-dev) or file is missing: packages do not say what they need"
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
if ! finds_dependencies || ! command -v dpkg-query >/dev/null; then
    skip "there are no tools of Debian: no bare root"
elif ! { bare_root_is_made && into_root /usr/bin/tarn --version >/dev/null 2>&1; } &&
    [ "$(id -u)" -ne 0 ] && ! unshare --user --map-root-user true 2>/dev/null; then
    skip "no user namespaces: no bare root"
else
    works_in_root
    count "program and library work in a bare root" $?
    names_sqlite
    count "without SQLite its package is named" $?
fi
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
