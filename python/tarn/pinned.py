# SPDX-License-Identifier: MIT
"""Pinned host memory, cached, as PyTorch's caching host allocator has it. Sizes are bytes."""

import ctypes

from tarn import _ffi
from tarn._ffi import call, lib
from tarn.allocator import config_of, flat_stats, stat_dict


def _duration_dict(duration):
    """Microseconds that calls took, as PyTorch shows them."""
    return {
        "total": duration.total,
        "max": duration.max,
        "min": duration.min,
        "count": duration.count,
        "avg": duration.total // duration.count if duration.count else 0,
    }


class Pinned:
    """Pinned memory made through a device. `settings` is a string as PYTORCH_ALLOC_CONF has it, of
    which those of pinned memory count; None takes the environment's."""

    def __init__(self, device, settings=None):
        config = config_of(settings)
        handle = ctypes.c_void_p()
        call(lib.tarn_pinned_create, device.handle, ctypes.byref(config), ctypes.byref(handle))
        self.handle = handle
        self._device = device  # must outlive it

    def close(self):
        """Gives all memory back, blocks in use included."""
        handle, self.handle = self.handle, None
        lib.tarn_pinned_destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def alloc(self, size):
        """Address of at least `size` bytes, not initialised; None for size 0."""
        memory = ctypes.c_void_p()
        call(lib.tarn_pinned_alloc, self.handle, size, ctypes.byref(memory))
        return memory.value

    def free(self, memory):
        """Frees what alloc returned; None does nothing."""
        call(lib.tarn_pinned_free, self.handle, memory)

    def empty_cache(self):
        """Gives cached memory back to the driver."""
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
        """The same as torch.cuda.host_memory_stats has them, keys in order."""
        return flat_stats(self.stats())

    def reset_peak_stats(self):
        lib.tarn_pinned_reset_peak_stats(self.handle)

    def reset_accumulated_stats(self):
        lib.tarn_pinned_reset_accumulated_stats(self.handle)
