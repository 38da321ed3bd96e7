# SPDX-License-Identifier: MIT
"""tarn as the memory manager of Numba (an external memory manager, EMM).

    import tarn, numba_tarn
    numba_tarn.use(tarn.Allocator(tarn.Device("cuda:0")))  # before Numba makes a context

Device memory comes from the allocator; pinned and mapped host memory stay Numba's own. Numba does
not pass the stream: memory is allocated for the default stream, and Numba frees it when the last
reference is gone, so work on other streams has to be finished by then. The allocator must outlive
every array.
"""

import ctypes

import tarn
from numba import cuda

_allocator = None


def _pointer(address):
    """An address as Numba wants it: of CUDA's Python bindings where it uses them."""
    try:
        from numba.cuda.cudadrv import driver
    except ImportError:
        return ctypes.c_uint64(address)
    if not getattr(driver, "USE_NV_BINDING", True):
        return ctypes.c_uint64(address)
    try:
        from cuda.bindings.driver import CUdeviceptr
    except ImportError:
        from cuda.cuda import CUdeviceptr
    return CUdeviceptr(address)


class TarnMemoryManager(cuda.HostOnlyCUDAMemoryManager):
    """Numba's interface over a tarn.Allocator."""

    @property
    def interface_version(self):
        return 1

    def initialize(self):
        super().initialize()

    def memalloc(self, size):
        try:
            address = _allocator.alloc(size)
        except tarn.OutOfMemoryError as error:
            raise MemoryError(str(error)) from error
        return cuda.MemoryPointer(
            self.context, _pointer(address), size, finalizer=lambda: _allocator.free(address)
        )

    def get_memory_info(self):
        free, total = _allocator.device.memory_info()
        return cuda.MemoryInfo(free=free, total=total)

    def get_ipc_handle(self, memory):
        raise NotImplementedError("share memory between processes through tarn/ipc.h")

    def reset(self):
        super().reset()
        _allocator.empty_cache()


def use(allocator):
    """Makes Numba allocate from there. Before anything of Numba uses the GPU."""
    global _allocator
    _allocator = allocator
    cuda.set_memory_manager(TarnMemoryManager)
