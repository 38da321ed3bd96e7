# SPDX-License-Identifier: MIT
"""Each function asks torch._C when it is called, as torch's do."""

import collections
import contextlib
import ctypes
import pickle

import torch
from torch import _C


class CUDAPluggableAllocator:
    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        addresses = [
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in (alloc, free)
        ]
        self._allocator = _C._cuda_customAllocator(*addresses)

    def allocator(self):
        return self._allocator


def change_current_allocator(allocator):
    _C._cuda_changeCurrentAllocator(allocator.allocator())


def memory_stats_as_nested_dict(device=None):
    return _C._cuda_memoryStats(device or 0) if torch.cuda.is_initialized() else {}


def memory_stats(device=None):
    flat = {}

    def add(prefix, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                key = "_".join(map(str, key)) if isinstance(key, tuple) else key
                add(f"{prefix}.{key}" if prefix else key, inner)
        else:
            flat[prefix] = value

    add("", memory_stats_as_nested_dict(device))
    return collections.OrderedDict(sorted(flat.items()))


def memory_allocated(device=None):
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device=None):
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def reset_peak_memory_stats(device=None):
    _C._cuda_resetPeakMemoryStats(device or 0)


def reset_accumulated_memory_stats(device=None):
    _C._cuda_resetAccumulatedMemoryStats(device or 0)


def empty_cache():
    if torch.cuda.is_initialized():
        _C._cuda_emptyCache()


def set_per_process_memory_fraction(fraction, device=None):
    torch.cuda.init()
    _C._cuda_setMemoryFraction(fraction, device or 0)


def get_per_process_memory_fraction(device=None):
    torch.cuda.init()
    return _C._cuda_getMemoryFraction(device or 0)


def memory_snapshot(mempool_id=None, include_traces=True):
    argument = None if mempool_id is None else (*mempool_id, include_traces)
    return _C._cuda_memorySnapshot(argument)["segments"]


def _snapshot(device=None, augment_with_fx_traces=False):
    return _C._cuda_memorySnapshot(None)


def _dump_snapshot(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def _save_segment_usage(filename="output.svg", snapshot=None):
    raise OSError("the script of the flame graph is on the network")


def _save_memory_usage(filename="output.svg", snapshot=None):
    raise OSError("the script of the flame graph is on the network")


def get_allocator_backend():
    return _C._cuda_getAllocatorBackend()


class MemPool:
    """A pool of the current allocator, or, with an allocator, one that takes segments from it."""

    _next = 0

    def __init__(self, allocator=None, use_on_oom=False, no_split=False):
        MemPool._next += 1
        self.id = (0, MemPool._next)
        self.options = (use_on_oom, no_split)
        self.allocator = allocator
        self.is_used = False
        if allocator is None:
            torch.cuda.init()

    def segment(self, size):
        call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
        return call(self.allocator.alloc)(size, 0, None)

    def give_back(self, ptr, size):
        arguments = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
        ctypes.CFUNCTYPE(None, *arguments)(self.allocator.free)(ptr, size, 0, None)


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """torch's releases the use of each begin, because a MemPool holds one: here that of the first
    stays."""
    _C._cuda_beginAllocateCurrentThreadToPool(device or 0, pool.id)
    try:
        yield
    finally:
        _C._cuda_endAllocateToPool(device or 0, pool.id)
        if pool.is_used:
            _C._cuda_releasePool(device or 0, pool.id)
        pool.is_used = True
