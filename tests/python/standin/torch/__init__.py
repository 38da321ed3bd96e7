# SPDX-License-Identifier: MIT
"""A stand-in for torch: as much of its allocator interface as tests of tarn.torch need.

What torch does in C++ is done by two C++ libraries: tests/plug/pluggable.cpp, torch's pluggable
allocator, and tests/plug/torch_stub.cpp, the libraries that the allocator class is linked with.
`Memory` takes the place of a tensor.
"""

import os

__version__ = os.environ.get("STANDIN_TORCH_VERSION", "2.11.0+standin")


class OutOfMemoryError(RuntimeError):
    pass


def compiled_with_cxx11_abi():
    return True


from torch import _C, cuda  # noqa: E402


class Memory:
    """Memory of a device: what a tensor's storage is."""

    def __init__(self, size, stream=0, device=0):
        cuda.init()
        self.size = size
        self.ptr = 0
        self.ptr = _C.alloc(size, device, stream)

    def record_stream(self, stream):
        _C.record_stream(self.ptr, stream)

    def __del__(self):
        if self.ptr:
            _C.free(self.ptr)
