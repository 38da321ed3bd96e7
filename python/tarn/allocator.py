# SPDX-License-Identifier: MIT
"""Thin classes over a device and an allocator. Sizes are bytes, streams and pointers are numbers.

Errors are `tarn.Error` and `tarn.OutOfMemoryError`. Objects may be used from any thread, but
not during or after close().
"""

import collections
import contextlib
import ctypes
import os
import threading
import warnings

from tarn import _ffi, pool, snapshot
from tarn._ffi import call, check, lib
from tarn.errors import Error


def stat_dict(stat):
    """A counter with PyTorch's keys."""
    return {
        "current": stat.current,
        "peak": stat.peak,
        "allocated": stat.allocated,
        "freed": stat.freed,
    }


def by_pool_dict(by_pool):
    return {pool: stat_dict(stat) for pool, stat in zip(_ffi.STAT_POOLS, by_pool)}


def stats_dict(stats):
    """struct tarn_stats as the nested dictionary of torch.cuda.memory_stats_as_nested_dict."""
    nested = {
        "num_alloc_retries": stats.num_alloc_retries,
        "num_ooms": stats.num_ooms,
        "max_split_size": stats.max_split_size,
        "num_sync_all_streams": stats.num_sync_all_streams,
        "num_device_alloc": stats.num_device_alloc,
        "num_device_free": stats.num_device_free,
    }
    for kind, by_pool in zip(_ffi.STAT_KINDS, stats.by_pool):
        nested[kind] = by_pool_dict(by_pool)
    nested["oversize_allocations"] = stat_dict(stats.oversize_allocations)
    nested["oversize_segments"] = stat_dict(stats.oversize_segments)
    return nested


def flat_stats(nested):
    """Flattens a nested dictionary of counters as torch.cuda.memory_stats does: keys joined by
    dots and sorted."""
    flat = {}

    def add(prefix, level):
        for key, value in level.items():
            if isinstance(value, dict):
                add(f"{prefix}{key}.", value)
            else:
                flat[prefix + key] = value

    add("", nested)
    return collections.OrderedDict(sorted(flat.items()))


def check_fraction(fraction):
    """The checks of torch.cuda.set_per_process_memory_fraction."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")


def read_stats(handle):
    stats = _ffi.Stats(struct_size=ctypes.sizeof(_ffi.Stats))
    lib.tarn_allocator_get_stats(handle, ctypes.byref(stats))
    return stats


def reserved_by_pool(handle):
    """`reserved_bytes_by_private_pools` of torch.cuda.memory_stats_as_nested_dict."""
    room = 16
    while True:
        found = (_ffi.PoolReserved * room)()
        count = lib.tarn_allocator_get_pool_reserved(handle, found, room)
        if count <= room:
            break
        room = count
    return {(r.id.first, r.id.second): by_pool_dict(r.by_pool) for r in found[:count]}


def page_stats(handle):
    """The fields of struct tarn_page_stats (tarn/pages.h); `by_time` is a list."""
    found = _ffi.PageStats(struct_size=ctypes.sizeof(_ffi.PageStats))
    lib.tarn_allocator_get_page_stats(handle, ctypes.byref(found))
    fields = {name: getattr(found, name) for name, _ in found._fields_[1:]}
    return {**fields, "by_time": list(found.by_time)}


def sleep_stats(handle):
    """The fields of struct tarn_sleep_stats (tarn/sleep.h)."""
    found = _ffi.SleepStats(struct_size=ctypes.sizeof(_ffi.SleepStats))
    lib.tarn_allocator_get_sleep_stats(handle, ctypes.byref(found))
    return {name: getattr(found, name) for name, _ in found._fields_[1:]}


def sleep(handle, pool, discard, keep_host):
    """tarn_allocator_sleep for the pool (first, second)."""
    options = _ffi.SleepOptions(ctypes.sizeof(_ffi.SleepOptions), discard, keep_host)
    call(lib.tarn_allocator_sleep, handle, _ffi.PoolId(*pool), ctypes.byref(options))


def config_of(text):
    """Settings from a settings string, or from the environment if it is None."""
    config = _ffi.Config()
    size = ctypes.sizeof(config)
    if text is None:
        call(lib.tarn_config_from_env_sized, ctypes.byref(config), size)
    else:
        call(lib.tarn_config_parse_sized, text.encode(), ctypes.byref(config), size)
    return config


def summary_text(stats, device, abbreviated=False):
    """The table of torch.cuda.memory_summary for these counters."""
    return _ffi.written(
        lib.tarn_report_summary, ctypes.byref(stats), device, abbreviated, error=False
    ).decode()


class Device:
    """A source of memory: "cuda:0", or a simulated device such as "sim:80GiB"."""

    def __init__(self, spec=None):
        handle = ctypes.c_void_p()
        call(lib.tarn_device_open, None if spec is None else spec.encode(), ctypes.byref(handle))
        self.handle = handle

    def close(self):
        """Closes the device. Its allocators must already be closed."""
        handle, self.handle = self.handle, None
        lib.tarn_device_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def info(self):
        """ordinal, backend, total_memory and granularity."""
        info = _ffi.DeviceInfo(struct_size=ctypes.sizeof(_ffi.DeviceInfo))
        lib.tarn_device_get_info(self.handle, ctypes.byref(info))
        return {
            "ordinal": info.ordinal,
            "backend": info.backend.decode(),
            "total_memory": info.total_memory,
            "granularity": info.granularity,
        }

    def memory_info(self):
        """Free and total bytes as the driver reports them."""
        free, total = ctypes.c_uint64(), ctypes.c_uint64()
        check(
            lib.tarn_device_memory_info(self.handle, ctypes.byref(free), ctypes.byref(total))
        )
        return free.value, total.value

    def list_processes(self):
        """The text of torch.cuda.list_gpu_processes. Needs no pynvml; tarn.Error without NVML."""
        return _ffi.written(lib.tarn_device_list_processes, self.handle).decode()


class Allocator:
    """The caching allocator of one device. `settings` is a PYTORCH_ALLOC_CONF string; None
    uses the environment's."""

    def __init__(self, device, settings=None):
        config = config_of(settings)
        handle = ctypes.c_void_p()
        call(
            lib.tarn_allocator_create,
            device.handle,
            ctypes.byref(config),
            ctypes.byref(handle),
        )
        self.handle = handle
        self._device = device  # must outlive it
        self._tags = {}  # ids of private pools, by tag
        self._pressure = {}  # what the library may call, by the function behind it

    def close(self):
        """Returns all memory to the device, allocated blocks included."""
        handle, self.handle = self.handle, None
        lib.tarn_allocator_destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def device(self):
        """The device that it was made on."""
        return self._device

    def alloc(self, size, stream=0):
        """Allocates `size` bytes for work on the stream and returns the address; 0 for size 0."""
        ptr = ctypes.c_uint64()
        call(lib.tarn_allocator_alloc, self.handle, size, stream, ctypes.byref(ptr))
        return ptr.value

    def try_alloc(self, size, stream=0, within_budget=False, never_grow=False):
        """Allocates if that is cheap, else returns None: no report is made and nobody is called.
        `within_budget`: grows up to the soft limit only; `never_grow`: takes free blocks only."""
        ptr = ctypes.c_uint64()
        flags = pool.try_flags(within_budget, never_grow)
        status = lib.tarn_alloc_try(self.handle, size, stream, flags, ctypes.byref(ptr))
        return pool.try_result(status, ptr)

    def explain(self, size, stream=0):
        """The text of the error if such a request failed now."""
        error = _ffi.TarnError()
        lib.tarn_alloc_explain(self.handle, size, stream, ctypes.byref(error))
        return error.text.decode(errors="replace")

    def alloc_at(self, address, size, stream=0):
        """The same at this address, which must be inside a free block."""
        call(lib.tarn_allocator_alloc_at, self.handle, size, stream, address)
        return address

    def free(self, ptr):
        """Frees what alloc returned; 0 does nothing."""
        call(lib.tarn_allocator_free, self.handle, ptr)

    def record_stream(self, ptr, stream):
        """Declares that the block is also used on that stream."""
        call(lib.tarn_allocator_record_stream, self.handle, ptr, stream)

    def empty_cache(self):
        """Returns free segments to the device."""
        call(lib.tarn_allocator_empty_cache, self.handle)

    def trim(self, target):
        """Returns cached memory until at most `target` bytes are reserved; returns how many are."""
        reserved = ctypes.c_uint64()
        call(lib.tarn_allocator_trim, self.handle, target, ctypes.byref(reserved))
        return reserved.value

    @contextlib.contextmanager
    def tag(self, name):
        """Allocations of this thread get memory under that tag, apart from all others, which can
        sleep. Not inside another tag() of the same name."""
        pool = _ffi.PoolId(0, len(self._tags) + 1)
        is_new = name not in self._tags
        pool = self._tags.setdefault(name, pool)
        thread = threading.get_ident()
        mine = _ffi.POOL_FILTER(lambda _context, _stream: threading.get_ident() == thread)
        call(lib.tarn_allocator_begin_pool, self.handle, pool, mine, None)
        try:
            yield
        finally:
            call(lib.tarn_allocator_end_pool, self.handle, pool)
            if not is_new:  # one use is enough
                call(lib.tarn_allocator_release_pool, self.handle, pool)

    def sleep(self, tag, discard=False, keep_host=False):
        """Gives the memory under the tag back to the device; its addresses stay. What allocated
        blocks hold is kept on the host, or discarded. No work may use the memory until wake(). Only
        expandable segments can sleep. With keep_host the host's memory stays for the next time."""
        pool = self._pool_of(tag)
        sleep(self.handle, (pool.first, pool.second), discard, keep_host)

    def wake(self, tag):
        """Brings the memory back at the same addresses, with its contents unless these were
        discarded. tarn.OutOfMemoryError: it is still asleep; try again with more memory free."""
        call(lib.tarn_allocator_wake, self.handle, self._pool_of(tag))

    def is_asleep(self, tag):
        return lib.tarn_allocator_is_asleep(self.handle, self._pool_of(tag))

    def sleep_stats(self):
        """What sleeps, and how long sleeping and waking took: the fields of struct
        tarn_sleep_stats (tarn/sleep.h)."""
        return sleep_stats(self.handle)

    def _pool_of(self, tag):
        if tag not in self._tags:
            raise Error("TARN_ERR_NOT_FOUND", f"nothing was allocated under the tag {tag!r}")
        return self._tags[tag]

    def base_allocation(self, ptr):
        """Address and size of the segment that contains the block."""
        base, size = ctypes.c_uint64(), ctypes.c_uint64()
        call(
            lib.tarn_allocator_base_allocation,
            self.handle,
            ptr,
            ctypes.byref(base),
            ctypes.byref(size),
        )
        return base.value, size.value

    def set_memory_fraction(self, fraction):
        """Limits reserved bytes to this fraction of the device's memory, a float from 0 to 1."""
        check_fraction(fraction)
        call(lib.tarn_allocator_set_memory_fraction, self.handle, fraction)

    def set_limit(self, limit):
        """Limits reserved bytes; None means no limit."""
        limit = _ffi.SIZE_UNLIMITED if limit is None else limit
        call(lib.tarn_allocator_set_limit, self.handle, limit)

    def set_soft_limit(self, limit):
        """Reserved bytes above which pressure callbacks are asked first; None means no limit."""
        limit = _ffi.SIZE_UNLIMITED if limit is None else limit
        call(lib.tarn_allocator_set_soft_limit, self.handle, limit)

    def on_pressure(self, function):
        """Calls function(bytes) when the device or a limit refuses a request; it frees what it can
        and returns how many bytes. An exception in it counts as 0 and is printed."""

        def called(_, pressure):
            return int(function(pressure.contents.bytes) or 0)

        callback = _ffi.PRESSURE(called)
        check(lib.tarn_allocator_add_pressure_callback(self.handle, callback, None))
        self._pressure[function] = callback

    def remove_pressure(self, function):
        """Ends that; KeyError where on_pressure was not called with it."""
        callback = self._pressure.pop(function)
        check(lib.tarn_allocator_remove_pressure_callback(self.handle, callback, None))

    def find_block(self, ptr):
        """The fields of struct tarn_block (tarn/block.h); `pool` is a pair of numbers."""
        found = _ffi.Block(struct_size=ctypes.sizeof(_ffi.Block))
        call(lib.tarn_allocator_find_block, self.handle, ptr, ctypes.byref(found))
        fields = {name: getattr(found, name) for name, _ in found._fields_[1:]}
        return {**fields, "pool": (found.pool.first, found.pool.second)}

    def set_user_data(self, ptr, user=None, tag=0):
        """Attaches an address and a number to a live block until it is freed; find_block has them
        as `user` and `user_tag`. Without both it takes them off."""
        call(lib.tarn_allocator_set_user_data, self.handle, ptr, user, tag)

    def good_size(self, size):
        """What a request of this size is rounded up to."""
        return lib.tarn_allocator_good_size(self.handle, size)

    def release_stream(self, stream):
        """Returns what is cached for one stream to the device."""
        call(lib.tarn_allocator_release_stream, self.handle, stream)

    @property
    def limit(self):
        """Limit of reserved bytes; None means no limit."""
        limit = lib.tarn_allocator_get_limit(self.handle)
        return None if limit == _ffi.SIZE_UNLIMITED else limit

    @property
    def memory_fraction(self):
        """Limit of reserved bytes as a fraction of the device's memory; 1.0 means no limit."""
        return lib.tarn_allocator_get_memory_fraction(self.handle)

    @property
    def backend(self):
        """As torch.cuda.get_allocator_backend: "native" or "cudaMallocAsync"."""
        return lib.tarn_allocator_get_backend(self.handle).decode()

    def stats(self):
        """Counters: the nested dictionary of torch.cuda.memory_stats_as_nested_dict."""
        return stats_dict(read_stats(self.handle))

    def flat_stats(self):
        """The same with the flat, sorted keys of torch.cuda.memory_stats: "active.all.current"."""
        return flat_stats(self.stats())

    def reserved_by_pool(self):
        """Reserved bytes of every private pool, and of those that are gone until a reset: what
        torch.cuda.memory_stats_as_nested_dict has as "reserved_bytes_by_private_pools" since
        torch 2.14. The keys are ids, pairs of numbers."""
        return reserved_by_pool(self.handle)

    def page_stats(self):
        """Pages that policy:compact created and moved, and the time that requests took for it: the
        fields of struct tarn_page_stats (tarn/pages.h)."""
        return page_stats(self.handle)

    def memory_allocated(self):
        """Allocated bytes."""
        return self._bytes("allocated_bytes", "current")

    def max_memory_allocated(self):
        """Peak of allocated bytes since creation or reset_peak_stats."""
        return self._bytes("allocated_bytes", "peak")

    def memory_reserved(self):
        """Reserved bytes."""
        return self._bytes("reserved_bytes", "current")

    def max_memory_reserved(self):
        """Peak of reserved bytes since creation or reset_peak_stats."""
        return self._bytes("reserved_bytes", "peak")

    def memory_cached(self):
        """Deprecated: memory_reserved."""
        _renamed("memory_cached", "memory_reserved")
        return self.memory_reserved()

    def max_memory_cached(self):
        """Deprecated: max_memory_reserved."""
        _renamed("max_memory_cached", "max_memory_reserved")
        return self.max_memory_reserved()

    def reset_max_memory_allocated(self):
        """Deprecated: reset_peak_stats."""
        _resets_all("reset_max_memory_allocated")
        self.reset_peak_stats()

    def reset_max_memory_cached(self):
        """Deprecated: reset_peak_stats."""
        _resets_all("reset_max_memory_cached")
        self.reset_peak_stats()

    def _bytes(self, kind, part):
        return self.stats()[kind]["all"][part]

    def reset_peak_stats(self):
        lib.tarn_allocator_reset_peak_stats(self.handle)

    def reset_accumulated_stats(self):
        lib.tarn_allocator_reset_accumulated_stats(self.handle)

    def summary(self, abbreviated=False):
        """The table of torch.cuda.memory_summary."""
        return summary_text(read_stats(self.handle), self._device.info["ordinal"], abbreviated)

    def snapshot(self):
        """The dictionary of torch.cuda.memory._snapshot(), without history."""
        with self._captured() as handle:
            return snapshot.dict_of(handle)

    def dump_snapshot(self, filename="dump_snapshot.pickle"):
        """Writes a snapshot to a file: a pickle, or JSON when the name ends in ".json"; compressed
        when it ends in ".gz" or ".zst"."""
        with self._captured() as handle:
            call(lib.tarn_snapshot_save, handle, os.fsencode(filename))

    def save_segment_usage(self, filename="output.svg"):
        """Writes a flame graph (SVG) of bytes by stream, segment, state and stack."""
        with self._captured() as handle:
            snapshot.save_flame(handle, _ffi.FLAME_SEGMENTS, filename)

    def save_memory_usage(self, filename="output.svg"):
        """The same without the segments."""
        with self._captured() as handle:
            snapshot.save_flame(handle, _ffi.FLAME_MEMORY, filename)

    def _captured(self):
        source = _ffi.CaptureSource(self.handle, None)
        return snapshot.made(lib.tarn_snapshot_capture, ctypes.byref(source), 1, None)


def _renamed(old, new):
    """PyTorch's warning about deprecated names."""
    warnings.warn(
        f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning, stacklevel=3
    )


def _resets_all(name):
    warnings.warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, "
        "which resets /all/ peak memory stats.",
        FutureWarning,
        stacklevel=3,
    )
