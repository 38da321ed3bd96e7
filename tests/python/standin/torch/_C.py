# SPDX-License-Identifier: MIT
"""torch._C, as far as it is there: on the pluggable allocator once one is set, else on torch's
allocator class. What the pluggable allocator refuses is refused in torch's words."""

import ctypes
import os

import torch

_pluggable = ctypes.CDLL(os.environ["STANDIN_PLUGGABLE"])
_pluggable.pluggable_text.restype = ctypes.c_char_p
_pluggable.pluggable_create.restype = ctypes.c_void_p
_stub = None
if os.environ.get("STANDIN_STUB"):
    _stub = ctypes.CDLL(os.environ["STANDIN_STUB"], mode=ctypes.RTLD_GLOBAL)
    _stub.torch_stub_text.restype = ctypes.c_char_p
    _stub.torch_stub_allocated.restype = ctypes.c_int64

_SETTERS = (
    "set_reset_fn",
    "set_memory_fraction_fn",
    "set_base_alloc_fn",
    "set_record_stream_fn",
    "set_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn",
    "set_release_pool",
)
_state = {"pluggable": False}
_observers = []
settings = []  # what torch's own settings were changed to


def _check(result):
    if result == 0:
        return
    of = _pluggable.pluggable_text if _state["pluggable"] else _stub.torch_stub_text
    raise (torch.OutOfMemoryError if result == 2 else RuntimeError)(of().decode())


class CustomAllocator:
    def __init__(self, alloc, free):
        self.alloc, self.free = alloc, free
        self.object = ctypes.c_void_p(
            _pluggable.pluggable_create(ctypes.c_void_p(alloc), ctypes.c_void_p(free))
        )
        for name in _SETTERS:
            setattr(self, name, lambda address, name=name: self._set(name, address))

    def _set(self, name, address):
        _pluggable.pluggable_set(self.object, name.encode(), ctypes.c_void_p(address))


def _cuda_customAllocator(alloc, free):
    return CustomAllocator(alloc, free)


def _cuda_changeCurrentAllocator(allocator):
    _state["pluggable"] = True
    _check(_pluggable.pluggable_change_current(allocator.object))


def init(device_count):
    _pluggable.pluggable_init()
    if _stub and not _state["pluggable"]:
        _stub.torch_stub_init(device_count)


def alloc(size, device, stream):
    ptr = ctypes.c_void_p()
    size, stream = ctypes.c_size_t(size), ctypes.c_void_p(stream)
    if _state["pluggable"]:
        _check(_pluggable.pluggable_alloc(size, device, stream, ctypes.byref(ptr)))
    else:
        _check(_stub.torch_stub_alloc(size, stream, ctypes.byref(ptr)))
    return ptr.value or 0


def free(ptr):
    function = _pluggable.pluggable_free if _state["pluggable"] else _stub.torch_stub_free
    _check(function(ctypes.c_void_p(ptr)))


def record_stream(ptr, stream):
    _check(_pluggable.pluggable_record_stream(ctypes.c_void_p(ptr), ctypes.c_void_p(stream)))


def _cuda_beginAllocateCurrentThreadToPool(device, pool):
    _check(_pluggable.pluggable_begin_pool(device, *map(ctypes.c_uint64, pool)))


def _cuda_endAllocateToPool(device, pool):
    _check(_pluggable.pluggable_end_pool(device, *map(ctypes.c_uint64, pool)))


def _cuda_releasePool(device, pool):
    _check(_pluggable.pluggable_release_pool(device, *map(ctypes.c_uint64, pool)))


def _cuda_emptyCache():
    _check(_pluggable.pluggable_empty_cache())


def _cuda_setMemoryFraction(fraction, device):
    _check(_pluggable.pluggable_set_fraction(ctypes.c_double(fraction), device))


def _refuse(name):
    def refused(*_):
        raise RuntimeError(f"CUDAPluggableAllocator does not yet support {name}.")

    return refused


_cuda_resetPeakMemoryStats = _refuse("resetPeakStats")
_cuda_resetAccumulatedMemoryStats = _refuse("resetAccumulatedStats")
_cuda_getMemoryFraction = _refuse("getMemoryFraction")
_cuda_getCheckpointState = _refuse("getCheckpointState")


def _cuda_memoryStats(device):
    if _state["pluggable"] or not _stub:
        _refuse("getDeviceStats")()
    return {"allocated_bytes": {"all": {"current": _stub.torch_stub_allocated(device)}}}


def _cuda_memorySnapshot(_argument=None):
    if _state["pluggable"] or not _stub:
        _refuse("snapshot")()
    return {
        "segments": [],
        "device_traces": [[] for _ in range(torch.cuda.device_count())],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "of the stand-in"},
        "external_annotations": [],
    }


def _cuda_attach_out_of_memory_observer(observer):
    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t
    )
    _observers.append(kind(observer))
    _stub.torch_stub_attach_observer(_observers[-1])


def _accelerator_setAllocatorSettings(text):
    settings.append(text)


def _cuda_getAllocatorBackend():
    return "pluggable" if _state["pluggable"] else "native"
