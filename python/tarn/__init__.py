# SPDX-License-Identifier: MIT
"""GPU memory management with the decisions of PyTorch's caching allocator.

    import tarn
    with tarn.Device("sim:80GiB") as device, tarn.Allocator(device) as allocator:
        ptr = allocator.alloc(1 << 20)
        allocator.free(ptr)
        print(allocator.summary())

`tarn.torch.install()` makes it the allocator of PyTorch's CUDA tensors. The package uses
libtarn.so through ctypes; nothing is compiled, and only `tarn.torch` imports torch.

The library is searched for in the directory TARN_LIBRARY_DIR, in `lib` beside this package, in
`build` of a source tree, and on the system's library path.
"""

from tarn.allocator import Allocator, Device
from tarn.errors import Error, InvalidArgumentError, OutOfMemoryError
from tarn.pinned import Pinned
from tarn.pool import Pool
from tarn._ffi import version

__all__ = [
    "Allocator",
    "Device",
    "Error",
    "InvalidArgumentError",
    "OutOfMemoryError",
    "Pinned",
    "Pool",
    "version",
]


def __getattr__(name):
    if name == "torch":  # imports torch, so load it lazily
        import importlib

        return importlib.import_module("tarn.torch")
    raise AttributeError(f"module 'tarn' has no attribute {name!r}")
