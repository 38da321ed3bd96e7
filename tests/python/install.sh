#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh: a wheel is built and installed without a network, into an environment of its own, and
# the package there finds its libraries and sources. Needs python3 with venv, pip, setuptools and
# wheel.
set -u

root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/count.sh
. "$root/tests/cli/count.sh"

skip_all() { # REASON
    echo "skip: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

# The system's comes first, which has setuptools and wheel on Debian.
for python in /usr/bin/python3 python3; do
    command -v "$python" >/dev/null || continue
    "$python" -c 'import setuptools, wheel, ensurepip, pip' 2>/dev/null && break
    python=""
done
[ -n "${python:-}" ] || skip_all "no python3 with venv, pip, setuptools and wheel"
command -v cmake >/dev/null || skip_all "there is no cmake"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH TARN_LIBRARY_DIR
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
export CMAKE_BUILD_TYPE=Debug # the optimised libraries take most of the time

# pip works in the folder that it is given: a copy, so that nothing is left in the sources.
copy_sources() {
    mkdir "$work/tarn" &&
        (cd "$root" && tar -cf - CMakeLists.txt cmake include src plug python viewer) |
        tar -xf - -C "$work/tarn"
}

a_wheel_is_built() {
    "$python" -m pip wheel --no-build-isolation --no-index --no-deps -w "$work" \
        "$work/tarn/python" >"$work/log" 2>&1 || { tail -n 20 "$work/log" && return 1; }
    ls "$work"/tarn-*-py3-none-*.whl >/dev/null
}

it_is_installed() {
    "$python" -m venv "$work/venv" &&
        "$work/venv/bin/python" -m pip install --no-index "$work"/tarn-*.whl >"$work/log" 2>&1 &&
        rm -rf "$work/tarn"
}

it_works() {
    (cd "$work" && venv/bin/python - <<'END')
import os, sys
import tarn
from tarn import _ffi

site = os.path.dirname(os.path.abspath(tarn.__file__))
assert site.startswith(sys.prefix), site
assert tarn.version() == "0.1.0", tarn.version()
for name in ("libtarn.so.0", "libtarn-tools.so.0"):
    assert _ffi.find_library(name) == os.path.realpath(site + "/lib/" + name), name
with tarn.Device("sim:1GiB") as device, tarn.Allocator(device) as allocator:
    allocator.free(allocator.alloc(1000))
for name in ("plug/pytorch/torch_allocator.cpp", "plug/pytorch/glue.h", "include/tarn/base.h"):
    assert os.path.isfile(os.path.join(site, "source", name)), name
for name in ("__main__", "_class", "_fallback", "_program", "_routes"):
    assert os.path.isfile(os.path.join(site, "torch", name + ".py")), name
END
}

copy_sources || exit 1
for case in a_wheel_is_built it_is_installed it_works; do
    "$case"
    count "$case" $?
done
count_end
