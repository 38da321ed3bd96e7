# SPDX-License-Identifier: MIT
"""The library with the allocator class: finding it, compiling it, installing the class.

It serves one version of torch, whose headers it was compiled against. It lies with the other
libraries, if it was built with the package, or in the user's cache folder: TARN_CACHE_DIR, else
`tarn` in XDG_CACHE_HOME or ~/.cache.
"""

import contextlib
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import tempfile

import torch

from tarn import _ffi
from tarn._ffi import call
from tarn.errors import Error

plug = None  # the library, once loaded

_SOURCES = ("history.cpp", "torch_allocator.cpp")
_CUDA_HEADERS = ("cuda_runtime.h", "cuda_runtime_api.h", "crt/host_config.h")
_FLAGS = ("-O2", "-shared", "-fPIC", "-fno-plt", "-fvisibility=hidden", "-DNDEBUG")


def _refuse(text):
    raise Error("TARN_ERR_NOT_SUPPORTED", text)


def library_name():
    return f"libtarn_torch-{torch.__version__}.so"


def find():
    """Path of the library for this torch; None if there is none yet."""
    path = _ffi.find_library(library_name())
    if os.path.isabs(path):
        return path
    with contextlib.suppress(Error, OSError):
        cached = _cached_path()
        _check_owner(os.path.dirname(cached))
        if os.path.exists(cached):
            return cached
    return None


def load(path):
    global plug
    plug = _ffi.load_plug(path, _ffi.CLASS)


def install():
    call(plug.tarn_torch_install, torch.__version__.encode())


# Compiling.


def _root():
    """The folder that contains `plug` and `include`: in the package, or the sources' root."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    source = os.path.join(package, "source")
    if os.path.isdir(source):
        return source
    root = os.path.dirname(os.path.dirname(package))
    if os.path.isfile(os.path.join(root, "plug", "pytorch", _SOURCES[0])):
        return root
    return _refuse("this installation has no sources of it")


def _compiler():
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    return _refuse("there is no C++ compiler: install one, or set CXX")


def _torch_include():
    folder = os.path.join(os.path.dirname(torch.__file__), "include")
    if not os.path.isfile(os.path.join(folder, "c10", "cuda", "CUDACachingAllocator.h")):
        _refuse(f"this torch has no headers in {folder}")
    return [folder, os.path.join(folder, "torch", "csrc", "api", "include")]


def _cuda_include():
    """A folder with all headers of the CUDA runtime. Those of NVIDIA's packages beside torch come
    before a toolkit's, unless one is named; without the package of crt they are not complete."""
    named = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    nvcc = shutil.which("nvcc")
    found = [os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))] if nvcc else []
    beside = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia", "*")
    for toolkit in [*named, *sorted(glob.glob(beside)), *found, "/usr/local/cuda", "/usr"]:
        folder = os.path.join(toolkit, "include") if toolkit else ""
        if all(os.path.isfile(os.path.join(folder, name)) for name in _CUDA_HEADERS):
            return folder
    return _refuse(f"there are no CUDA headers ({', '.join(_CUDA_HEADERS)}): set CUDA_HOME")


def command(output):
    """The compiler's command line."""
    root = _root()
    torch_folder = os.path.dirname(torch.__file__)
    minor = int(torch.__version__.split(".")[1])
    includes = [root, os.path.join(root, "include")]
    systems = [*_torch_include(), _cuda_include()]
    return [
        *_compiler(),
        "-std=c++20" if minor >= 12 else "-std=c++17",
        *_FLAGS,
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(f"-I{folder}" for folder in includes),
        *(part for folder in systems for part in ("-isystem", folder)),
        *(os.path.join(root, "plug", "pytorch", name) for name in _SOURCES),
        "-o",
        output,
        _ffi.find_library("libtarn.so.0"),
        f"-L{os.path.join(torch_folder, 'lib')}",
        "-Wl,--no-as-needed",  # the CUDA runtime's functions are found through c10_cuda
        "-lc10",
        "-lc10_cuda",
    ]


def _key():
    """Changes with everything that the library is made from, except torch's version."""
    digest = hashlib.sha256(" ".join(_FLAGS).encode())
    for pattern in ("plug/pytorch/*.[ch]*", "include/tarn/*.h"):
        for path in sorted(glob.glob(os.path.join(_root(), pattern))):
            with open(path, "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()[:16]


def _cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("TARN_CACHE_DIR") or os.path.join(base, "tarn")


def _cached_path():
    return os.path.join(_cache_folder(), _key(), library_name())


def _check_owner(folder):
    """Nobody else may be able to put a library there."""
    status = os.stat(folder)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        _refuse(f"{folder} can be written by others: set TARN_CACHE_DIR to a folder of your own")


def compile_library(verbose=False):
    """Compiles the library into the cache folder and returns its path. Other processes that want
    the same one wait for it."""
    path = _cached_path()
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _check_owner(folder)
    with open(os.path.join(folder, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            _compile(path, verbose)
    return path


def _compile(path, verbose):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as scratch:
        made = os.path.join(scratch, "made.so")
        line = command(made)
        if verbose:
            print(" ".join(line))
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            found = [text for text in done.stderr.splitlines() if "error" in text]
            reason = found[0] if found else f"status {done.returncode}"
            _refuse(f"{line[0]} could not compile it: {reason}")
        os.replace(made, path)
