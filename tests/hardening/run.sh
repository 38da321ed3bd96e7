#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD_FOLDER: what that build installs (the program, both libraries, the plug) has every
# guard of cmake/TarnHarden.cmake. Installed into a folder of its own, as packages are.
set -eu

build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
skipped=0

skip_all() { # REASON
    echo "skip: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

command -v readelf >/dev/null || skip_all "readelf (binutils) is not there"
command -v cmake >/dev/null || skip_all "cmake is not there"
[ -f "$build/cmake_install.cmake" ] || skip_all "there is no release build in $build: make build"

expect() { # COMPLAINT COMMAND [argument...]
    complaint=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$complaint"
    fi
}

expect_said() { # COMPLAINT PATTERN: in what readelf said
    expect "$1" grep -Eq "$2" "$work/said"
}

DESTDIR=$work cmake --install "$build" --prefix /usr >"$work/log" 2>&1 || {
    cat "$work/log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}
program=$(find "$work" -path '*/bin/tarn' -type f)
library=$(find "$work" -name 'libtarn.so.*.*' -type f)
tools=$(find "$work" -name 'libtarn-tools.so.*.*' -type f)
plug=$(find "$work" -name 'libtarn_torch.so' -type f)
preload=$(find "$work" -name 'libtarn_preload.so' -type f)
if grep -q '^CMAKE_CXX_COMPILER:.*NOTFOUND' "$build/CMakeCache.txt"; then
    echo "skip: $build was configured without a C++ compiler: it has no plug"
    skipped=$((skipped + 1))
    plug=none
fi

# Which marks of jumps the compiler's own start files let a finished file keep.
echo 'int main(void) { return 0; }' >"$work/probe.c"
marks=""
for flag in -fcf-protection=full -mbranch-protection=standard; do
    if ${CC:-cc} $flag -shared -fPIC "$work/probe.c" -o "$work/probe.so" 2>/dev/null; then
        marks=$(readelf -nW "$work/probe.so" | grep -Eo 'IBT|SHSTK|BTI|PAC' | sort -u || true)
        break
    fi
done

for file in "$program" "$library" "$tools" "$plug" "$preload"; do
    [ "$file" != none ] || continue
    name=$(basename "$file")
    expect "one of the program, the libraries and the plug is not installed" test -f "$file"
    [ -f "$file" ] || continue
    readelf -hldnW --dyn-syms "$file" >"$work/said" 2>/dev/null

    expect_said "$name: functions of other libraries are looked up late (no BIND_NOW)" \
        'FLAGS.*BIND_NOW|FLAGS_1.*NOW'
    expect_said "$name: the table of addresses stays writable (no RELRO)" \
        '^ +GNU_RELRO '
    expect_said "$name: the stack can run, or nothing says that it cannot (GNU_STACK)" \
        '^ +GNU_STACK .* RW +0x'
    expect_said "$name: is loaded at a fixed address (no PIE)" \
        '^ +Type: +DYN'
    expect_said "$name: no function guards its stack (no __stack_chk_fail)" \
        ' __stack_chk_fail'
    # The plug's one copy has a size that the compiler checks.
    [ "$file" = "$plug" ] ||
        expect_said "$name: no copy is checked (no _chk function of the C library)" \
            ' __[a-z]+_chk(@| |$)'
    for mark in $marks; do
        expect_said "$name: jumps may land anywhere (no $mark)" "Properties:.*$mark"
    done
done
if [ -z "$marks" ]; then
    echo "skip: the compiler's own start files have no marks for jumps, so no finished file does"
    skipped=1
fi

# Of our own objects every one is marked, whatever they are linked with.
archive=$(find "$work" -name 'libtarn.a' -type f)
if ${CC:-cc} -fcf-protection=full -c "$work/probe.c" -o "$work/probe.o" 2>/dev/null &&
    readelf -nW "$work/probe.o" | grep -q 'IBT, SHSTK'; then
    objects=$(readelf -hW "$archive" 2>/dev/null | grep -c '^File: ')
    marked=$(readelf -nW "$archive" 2>/dev/null | grep -c 'IBT, SHSTK' || true)
    expect "libtarn.a: $marked of $objects objects are marked with IBT and SHSTK" \
        test "$objects" -eq "$marked"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
