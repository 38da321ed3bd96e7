# SPDX-License-Identifier: MIT
"""tarn through the setters of torch's pluggable allocator, for a torch whose allocator class cannot
be compiled. Torch refuses much of its interface then; counters and snapshots without history are
taken over by replacing functions of torch._C. docs/pytorch.md lists what is missing."""

import ctypes

import torch

from tarn import _ffi
from tarn import snapshot as snapshots
from tarn._ffi import lib, plug
from tarn.allocator import read_stats, reserved_by_pool, stats_dict
from tarn.errors import Error
from tarn.torch import _devices

# Setters of torch's pluggable allocator, and our functions for them.
_SETTERS = {
    "set_reset_fn": "tarn_torch_reset",
    "set_memory_fraction_fn": "tarn_torch_set_memory_fraction",
    "set_base_alloc_fn": "tarn_torch_base_alloc",
    "set_record_stream_fn": "tarn_torch_record_stream",
    "set_begin_allocate_to_pool": "tarn_torch_begin_pool",
    "set_end_allocate_to_pool_fn": "tarn_torch_end_pool",
    "set_release_pool": "tarn_torch_release_pool",
}


def pluggable(alloc, free):
    """torch's pluggable allocator for two functions of ours."""
    path = _ffi.find_library("libtarn_torch.so")
    return torch.cuda.memory.CUDAPluggableAllocator(path, alloc, free)


def install():
    """The allocator, which must be kept."""
    allocator = pluggable("tarn_torch_alloc", "tarn_torch_free")
    inner = allocator.allocator()
    for setter, function in _SETTERS.items():
        if not hasattr(inner, setter):
            raise Error(
                "TARN_ERR_NOT_SUPPORTED",
                f"this torch ({torch.__version__}) has no {setter} for pluggable allocators",
            )
        address = ctypes.cast(getattr(plug.cdll, function), ctypes.c_void_p).value
        getattr(inner, setter)(address)
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError as error:
        raise Error(
            "TARN_ERR_STATE", f"torch did not take tarn as its allocator: {error}"
        ) from None
    return allocator


# Functions of torch._C.


def _open_allocators():
    found = (_devices.find(i) for i in range(max(torch.cuda.device_count(), 1)))
    return [handle for handle in found if handle]


def _memory_stats(device):
    handle = _devices.find(device)
    if handle:
        stats = stats_dict(read_stats(handle))
    else:
        limit = _devices.config().max_split_size
        unlimited = limit == _ffi.SIZE_UNLIMITED
        stats = stats_dict(_ffi.Stats(max_split_size=-1 if unlimited else limit))
    if int(torch.__version__.split(".")[1]) >= 14:  # older ones cannot flatten such keys
        stats["reserved_bytes_by_private_pools"] = reserved_by_pool(handle) if handle else {}
    return stats


def _reset_accumulated(device):
    handle = _devices.find(device)
    if handle:
        lib.tarn_allocator_reset_accumulated_stats(handle)


def _reset_peak(device):
    handle = _devices.find(device)
    if handle:
        lib.tarn_allocator_reset_peak_stats(handle)


def _memory_fraction(device):
    handle = _devices.find(device)
    return lib.tarn_allocator_get_memory_fraction(handle) if handle else 1.0


def _memory_snapshot(argument=None):
    """Segments and settings; there is no history."""
    pool = argument[:2] if argument and any(argument[:2]) else None
    count = max(torch.cuda.device_count(), 1)
    handles = _open_allocators()
    if not handles:
        return snapshots.empty(_devices.config(), count)
    with snapshots.captured(handles, count, pool) as handle:
        return snapshots.dict_of(handle)


routes = {
    "_cuda_memoryStats": _memory_stats,
    "_cuda_resetAccumulatedMemoryStats": _reset_accumulated,
    "_cuda_resetPeakMemoryStats": _reset_peak,
    "_cuda_getMemoryFraction": _memory_fraction,
    "_cuda_memorySnapshot": _memory_snapshot,
    "_accelerator_getDeviceStats": _memory_stats,
    "_accelerator_resetAccumulatedStats": _reset_accumulated,
    "_accelerator_resetPeakStats": _reset_peak,
}
