# SPDX-License-Identifier: MIT
"""torch._C, as far as it is there. Functions that are refused say what torch says."""

import ctypes
import os

import torch

_lib = ctypes.CDLL(os.environ["TARN_TORCH_STANDIN"])
_lib.standin_text.restype = ctypes.c_char_p
_lib.standin_custom_allocator.restype = ctypes.c_void_p

_SETTERS = (
    "set_init_fn",
    "set_reset_fn",
    "set_memory_fraction_fn",
    "set_base_alloc_fn",
    "set_record_stream_fn",
    "set_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn",
    "set_release_pool",
)
settings = []  # what torch's own settings were changed to


def check(result):
    text = _lib.standin_text().decode()
    if result == 1:
        raise torch.OutOfMemoryError(text)
    if result != 0:
        raise RuntimeError(text)


class CustomAllocator:
    def __init__(self, alloc, free):
        self.alloc, self.free = alloc, free
        self.object = ctypes.c_void_p(
            _lib.standin_custom_allocator(ctypes.c_void_p(alloc), ctypes.c_void_p(free))
        )
        for name in _SETTERS:
            setattr(self, name, lambda address, name=name: self._set(name, address))

    def _set(self, name, address):
        check(_lib.standin_set(self.object, name.encode(), ctypes.c_void_p(address)))


def _cuda_customAllocator(alloc, free):
    return CustomAllocator(alloc, free)


def _cuda_changeCurrentAllocator(allocator):
    check(_lib.standin_change_current(allocator.object))


def init(device_count):
    _lib.standin_init(device_count)


def alloc(size, device, stream):
    ptr = ctypes.c_void_p()
    size, stream = ctypes.c_size_t(size), ctypes.c_void_p(stream)
    check(_lib.standin_alloc(size, device, stream, ctypes.byref(ptr)))
    return ptr.value or 0


def free(ptr):
    check(_lib.standin_free(ctypes.c_void_p(ptr)))


def record_stream(ptr, stream):
    check(_lib.standin_record_stream(ctypes.c_void_p(ptr), ctypes.c_void_p(stream)))


def acquire_pool(device, pool):
    check(_lib.standin_acquire_pool(device, *map(ctypes.c_uint64, pool), None))


def release_pool(device, pool):
    check(_lib.standin_release_pool(device, *map(ctypes.c_uint64, pool)))


def cache_info(device):
    largest = ctypes.c_size_t()
    check(_lib.standin_cache_info(device, ctypes.byref(largest)))
    return largest.value


def _cuda_beginAllocateCurrentThreadToPool(device, pool):
    check(_lib.standin_begin_pool(device, *map(ctypes.c_uint64, pool), 0, None))


def _cuda_endAllocateToPool(device, pool):
    check(_lib.standin_end_pool(device, *map(ctypes.c_uint64, pool)))


_cuda_releasePool = release_pool


def _cuda_emptyCache():
    check(_lib.standin_empty_cache(ctypes.c_uint64(0), ctypes.c_uint64(0)))


def _cuda_setMemoryFraction(fraction, device):
    check(_lib.standin_set_fraction(ctypes.c_double(fraction), device))


def _refuse(name):
    def refused(*_):
        raise RuntimeError(f"CUDAPluggableAllocator does not yet support {name}.")

    return refused


_cuda_memoryStats = _refuse("getDeviceStats")
_cuda_resetPeakMemoryStats = _refuse("resetPeakStats")
_cuda_resetAccumulatedMemoryStats = _refuse("resetAccumulatedStats")
_cuda_memorySnapshot = _refuse("snapshot")
marks = []  # how torch's own switch was called


def _cuda_record_memory_history(enabled, *arguments):
    marks.append((enabled, *arguments))
    check(_lib.standin_record_history(enabled is not None))


def _cuda_record_memory_history_legacy(enabled, *arguments):
    marks.append((enabled, *arguments))
    check(_lib.standin_record_history(enabled))


def _cuda_isHistoryEnabled():
    enabled = ctypes.c_int()
    check(_lib.standin_is_history_enabled(ctypes.byref(enabled)))
    return bool(enabled.value)


_cuda_attach_out_of_memory_observer = _refuse("attachOutOfMemoryObserver")
_cuda_getMemoryFraction = _refuse("getMemoryFraction")
_cuda_getCheckpointState = _refuse("getCheckpointState")
_cuda_cudaCachingAllocator_enable = _refuse("enable")
_cuda_cudaCachingAllocator_is_enabled = _refuse("isEnabled")
_cuda_setMemoryMetadata = _refuse("setUserMetadata")
_cuda_getMemoryMetadata = _refuse("getUserMetadata")
_cuda_annotateMemory = _refuse("annotateMemory")


def _accelerator_setAllocatorSettings(text):
    settings.append(text)


def _cuda_getAllocatorBackend():
    return "pluggable"
