# SPDX-License-Identifier: MIT
"""Builds libtarn, libtarn-tools and the fallback for PyTorch with CMake, and puts them into the
package, with the sources from which the package compiles torch's allocator class later. The rest is
in pyproject.toml."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = ("plug/pytorch/*.h", "plug/pytorch/*.cpp", "include/tarn/*.h")


def run(*command):
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        sys.exit(f"tarn: {command[0]} is not there: install CMake 3.25 or newer and a C compiler")
    except subprocess.CalledProcessError as error:
        sys.exit(f"tarn: {' '.join(command[:2])} failed with status {error.returncode}")


def build_libraries(output):
    if not os.path.isfile(os.path.join(ROOT, "include", "tarn", "base.h")):
        sys.exit("tarn: libtarn is built from a checkout: run `pip install ./python` in its root")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    os.makedirs(output, exist_ok=True)
    with tempfile.TemporaryDirectory() as build:
        kind = os.environ.get("CMAKE_BUILD_TYPE", "Release")
        run("cmake", "-S", ROOT, "-B", build, *generator, f"-DCMAKE_BUILD_TYPE={kind}",
            "-DTARN_LINK_PROGRAM=OFF", "-DTARN_BUILD_PROGRAM=OFF",
            "-DTARN_BUILD_BENCH=OFF", "-DTARN_INSTALL=OFF")  # fmt: skip
        jobs = str(os.cpu_count() or 1)
        run("cmake", "--build", build, "-j", jobs, "--target", "tarn_tools_shared")
        for name in ("libtarn.so.0", "libtarn-tools.so.0"):
            shutil.copy(os.path.join(build, name), output)
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
            has_cxx = any(line.startswith("CMAKE_CXX_COMPILER:FILEPATH=") for line in cache)
        if has_cxx:
            run("cmake", "--build", build, "-j", jobs, "--target", "tarn_torch")
            shutil.copy(os.path.join(build, "libtarn_torch.so"), output)


class Build(build_py):
    def run(self):
        super().run()
        if getattr(self, "editable_mode", False):
            return  # the package in the sources finds what `make build` builds
        package = os.path.join(self.build_lib, "tarn")
        build_libraries(os.path.join(package, "lib"))
        for pattern in SOURCES:
            for path in glob.glob(os.path.join(ROOT, pattern)):
                copy = os.path.join(package, "source", os.path.relpath(path, ROOT))
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy(path, copy)


class Wheel(bdist_wheel):
    """The libraries are those of one system, and of every Python."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class WithLibraries(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=WithLibraries)
