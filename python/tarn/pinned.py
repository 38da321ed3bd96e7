# SPDX-License-Identifier: MIT
"""Cached pinned host memory, as in PyTorch's caching host allocator. Sizes are bytes."""

import ctypes

from tarn import _ffi
from tarn._ffi import call, lib
from tarn.allocator import config_of, flat_stats, stat_dict


def _duration_dict(duration):
    """Durations of calls in microseconds, with PyTorch's keys."""
    return {
        "total": duration.total,
        "max": duration.max,
        "min": duration.min,
        "count": duration.count,
        "avg": duration.total // duration.count if duration.count else 0,
    }


class Pinned:
    """Allocator of pinned memory through a device. `settings` is a PYTORCH_ALLOC_CONF string, of
    which only the pinned_ settings apply; None uses the environment's."""

    def __init__(self, device, settings=None):
        config = config_of(settings)
        handle = ctypes.c_void_p()
        call(lib.tarn_pinned_create, device.handle, ctypes.byref(config), ctypes.byref(handle))
        self.handle = handle
        self._device = device  # must outlive it

    def close(self):
        """Returns all memory, allocated blocks included."""
        handle, self.handle = self.handle, None
        lib.tarn_pinned_destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def alloc(self, size):
        """Allocates at least `size` uninitialised bytes; returns the address, None for size 0."""
        memory = ctypes.c_void_p()
        call(lib.tarn_pinned_alloc, self.handle, size, ctypes.byref(memory))
        return memory.value

    def free(self, memory):
        """Frees what alloc returned; None does nothing."""
        call(lib.tarn_pinned_free, self.handle, memory)

    def empty_cache(self):
        """Returns cached memory to the driver."""
        call(lib.tarn_pinned_empty_cache, self.handle)

    def stats(self):
        """Counters: the dictionary of torch.cuda.host_memory_stats_as_nested_dict."""
        stats = _ffi.PinnedStats(struct_size=ctypes.sizeof(_ffi.PinnedStats))
        lib.tarn_pinned_get_stats(self.handle, ctypes.byref(stats))
        nested = {"num_host_alloc": stats.num_host_alloc, "num_host_free": stats.num_host_free}
        for name in ("allocations", "active_requests", "allocated_bytes", "active_bytes"):
            nested[name] = stat_dict(getattr(stats, name))
        for name in ("host_alloc_time", "host_free_time"):
            nested[name] = _duration_dict(getattr(stats, name))
        return nested

    def flat_stats(self):
        """The same with the flat, sorted keys of torch.cuda.host_memory_stats."""
        return flat_stats(self.stats())

    def reset_peak_stats(self):
        lib.tarn_pinned_reset_peak_stats(self.handle)

    def reset_accumulated_stats(self):
        lib.tarn_pinned_reset_accumulated_stats(self.handle)
