# SPDX-License-Identifier: MIT
"""A stand-in for torch: as much of its allocator interface as tests of tarn.torch need.

What torch does in C++ is done by a C++ library (tests/plug/standin.cpp) that throws and catches
real exceptions. `Memory` takes the place of a tensor.
"""

__version__ = "2.11.0+standin"


class OutOfMemoryError(RuntimeError):
    pass


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
