# SPDX-License-Identifier: MIT
"""tarn as the allocator of CuPy (13 and newer).

    import tarn, cupy_tarn
    with tarn.Device("cuda:0") as device, tarn.Allocator(device) as allocator:
        with cupy_tarn.using(allocator):
            array = cupy.zeros(1000)

`c_allocator` hands over C functions: nothing of Python runs during a request. CuPy does not pass
the stream, so it is for programs on the default stream, and a failure is a null pointer.
`stream_allocator` asks CuPy for the current stream, frees on it and raises
cupy.cuda.memory.OutOfMemoryError; it costs a call of Python. Arrays must be gone before the
allocator is closed.
"""

import contextlib
import ctypes

import cupy
import tarn
from tarn import _ffi


def address(function):
    """The address of a function of the library."""
    return ctypes.cast(function, ctypes.c_void_p).value


def c_allocator(allocator):
    """A CFunctionAllocator over a tarn.Allocator; its `malloc` is what CuPy is given."""
    return cupy.cuda.memory.CFunctionAllocator(
        allocator.handle.value,
        address(_ffi.lib.tarn_cupy_alloc),
        address(_ffi.lib.tarn_cupy_free),
        allocator,  # kept alive
    )


def stream_allocator(allocator):
    """A PythonFunctionAllocator over a tarn.Allocator that knows streams."""
    streams = {}

    def malloc(size, device):
        stream = cupy.cuda.get_current_stream().ptr
        try:
            ptr = allocator.alloc(size, stream)
        except tarn.OutOfMemoryError as error:
            held = allocator.memory_allocated()
            raise cupy.cuda.memory.OutOfMemoryError(size, held, allocator.limit or 0) from error
        streams[ptr] = stream
        return ptr

    def free(ptr, device):
        stream = cupy.cuda.get_current_stream().ptr
        if streams.pop(ptr, stream) != stream:
            allocator.record_stream(ptr, stream)
        allocator.free(ptr)

    return cupy.cuda.memory.PythonFunctionAllocator(malloc, free)


@contextlib.contextmanager
def using(allocator, with_streams=True):
    """CuPy allocates from there inside of this context, on every thread."""
    before = cupy.cuda.get_allocator()
    chosen = stream_allocator(allocator) if with_streams else c_allocator(allocator)
    cupy.cuda.set_allocator(chosen.malloc)
    try:
        yield chosen
    finally:
        cupy.cuda.set_allocator(before)
