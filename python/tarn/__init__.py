# SPDX-License-Identifier: MIT
"""GPU memory management the way PyTorch's caching allocator does it.

    import tarn
    with tarn.Device("sim:80GiB") as device, tarn.Allocator(device) as allocator:
        ptr = allocator.alloc(1 << 20)
        allocator.free(ptr)
        print(allocator.summary())

`tarn.torch.install()` makes it the allocator of PyTorch's CUDA tensors. Everything is ctypes over
libtarn.so; nothing is compiled, and torch is imported by `tarn.torch` alone.

The library is looked for in the folder that TARN_LIBRARY_DIR names, in `lib` beside this package,
in the folder `build` of a source tree, and where the system looks for libraries.
"""

from tarn.allocator import Allocator, Device
from tarn.errors import Error, OutOfMemoryError
from tarn.pinned import Pinned
from tarn._ffi import version

__all__ = ["Allocator", "Device", "Error", "OutOfMemoryError", "Pinned", "version"]


def __getattr__(name):
    if name == "torch":  # imports torch, so only when asked for
        import importlib

        return importlib.import_module("tarn.torch")
    raise AttributeError(f"module 'tarn' has no attribute {name!r}")
