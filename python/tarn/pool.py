# SPDX-License-Identifier: MIT
"""Pools as handles (tarn/pool.h): memory kept apart, with a limit and counters of its own."""

import ctypes

from tarn import _ffi
from tarn._ffi import call, check, lib


def try_result(status, ptr):
    """The address of a try, None where memory is short."""
    if status == _ffi.STATUS_OUT_OF_MEMORY:
        return None
    check(status)
    return ptr.value


def try_flags(within_budget, never_grow):
    """The flags of a try."""
    return (_ffi.ALLOC_WITHIN_BUDGET if within_budget else 0) | (
        _ffi.ALLOC_NEVER_GROW if never_grow else 0
    )


class Pool:
    """A pool of an allocator, which must outlive it. Blocks are freed with allocator.free.

    With pages_stay the physical memory behind an address never moves under policy:compact.
    """

    def __init__(
        self,
        allocator,
        name="",
        limit=0,
        priority=0,
        no_split=False,
        use_on_oom=False,
        pages_stay=False,
    ):
        options = _ffi.PoolOptions(
            struct_size=ctypes.sizeof(_ffi.PoolOptions),
            priority=priority,
            name=name.encode(),
            limit=limit,
            no_split=no_split,
            use_on_oom=use_on_oom,
            pages_stay=pages_stay,
        )
        handle = ctypes.c_void_p()
        call(
            lib.tarn_pool_create,
            allocator.handle,
            ctypes.byref(options),
            ctypes.byref(handle),
        )
        self.handle = handle
        self.allocator = allocator  # must outlive it
        self.name = name

    def close(self):
        """Gives the pool's free memory back; blocks in use stay valid until they are freed."""
        handle, self.handle = self.handle, None
        lib.tarn_pool_destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def alloc(self, size, stream=0):
        """As Allocator.alloc, from the pool."""
        ptr = ctypes.c_uint64()
        call(lib.tarn_pool_alloc, self.handle, size, stream, ctypes.byref(ptr))
        return ptr.value

    def try_alloc(self, size, stream=0, within_budget=False, never_grow=False):
        """As Allocator.try_alloc, from the pool."""
        ptr = ctypes.c_uint64()
        flags = try_flags(within_budget, never_grow)
        status = lib.tarn_pool_alloc_try(self.handle, size, stream, flags, ctypes.byref(ptr))
        return try_result(status, ptr)

    def trim(self, target):
        """Returns the pool's free memory until at most `target` bytes are reserved for it; returns
        how many are."""
        reserved = ctypes.c_uint64()
        call(lib.tarn_pool_trim, self.handle, target, ctypes.byref(reserved))
        return reserved.value

    def set_limit(self, limit):
        """Limits the bytes that the pool reserves; None means no limit."""
        call(lib.tarn_pool_set_limit, self.handle, limit or 0)

    def stats(self):
        """The fields of struct tarn_pool_stats; `limit` is None without one."""
        found = _ffi.PoolStats(struct_size=ctypes.sizeof(_ffi.PoolStats))
        check(lib.tarn_pool_get_stats(self.handle, ctypes.byref(found)))
        fields = {name: getattr(found, name) for name, _ in found._fields_[1:]}
        if fields["limit"] == _ffi.SIZE_UNLIMITED:
            fields["limit"] = None
        return fields
