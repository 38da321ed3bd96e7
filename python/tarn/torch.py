# SPDX-License-Identifier: MIT
"""tarn as the allocator of PyTorch's CUDA tensors.

    import tarn.torch
    tarn.torch.install()      # before CUDA starts: before the first tensor on a GPU

From then on torch.cuda's memory functions describe tarn. Most of them are unchanged: they call
functions of `torch._C`, which are replaced, so that names imported earlier work as well.

Alternatively, `mempool()` keeps PyTorch's own allocator and gives one torch.cuda.MemPool segments
from tarn.
"""

import atexit
import ctypes
import os
import sys
import threading
import warnings

import torch

from tarn import _ffi
from tarn import snapshot as snapshots
from tarn._ffi import call, lib, plug
from tarn.allocator import Device, read_stats, stats_dict
from tarn.errors import Error

__all__ = [
    "dump_on_oom",
    "history_usage",
    "install",
    "is_installed",
    "last_error",
    "mempool",
    "oom_dump_path",
    "uninstall",
]

# Setters of torch's pluggable allocator, and our functions for them.
_SETTERS = {
    "set_init_fn": "tarn_torch_init",
    "set_reset_fn": "tarn_torch_reset",
    "set_memory_fraction_fn": "tarn_torch_set_memory_fraction",
    "set_base_alloc_fn": "tarn_torch_base_alloc",
    "set_record_stream_fn": "tarn_torch_record_stream",
    "set_begin_allocate_to_pool": "tarn_torch_begin_pool",
    "set_end_allocate_to_pool_fn": "tarn_torch_end_pool",
    "set_release_pool": "tarn_torch_release_pool",
}

_lock = threading.Lock()


def _renew_lock():
    """Replaces the lock in a forked child, where the thread that may hold it does not exist."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
_observers = []
_kept = []  # objects that torch knows only by address
_originals = {}  # name: torch's function
_installed = False


def is_installed():
    """Whether tarn is the allocator of this process."""
    return _installed


def uninstall():
    """Always fails: torch keeps one allocator from the first tensor to the end of the process."""
    raise Error(
        "TARN_ERR_NOT_SUPPORTED",
        "tarn cannot be uninstalled: torch keeps its allocator until the process ends",
    )


def last_error():
    """Text of the latest failure, or None. This is how failures of a MemPool's segments show."""
    error = _ffi.TarnError()
    return _ffi.text_of(error) if plug.tarn_torch_last_error(ctypes.byref(error)) else None


def dump_on_oom(path):
    """Writes a snapshot of all devices to this path when memory runs out, on the failing thread
    and before torch.OutOfMemoryError is raised. None disables it.

    In the path, %p is the process id, %r its rank (RANK and the like), %% a per cent sign. A name
    that ends in .json gives JSON. The default path is that of TARN_DUMP_ON_OOM, if it is set.
    """
    call(plug.tarn_torch_dump_on_oom, None if path is None else os.fsencode(path))


def oom_dump_path():
    """Path of the next out-of-memory snapshot; None if disabled."""
    path = ctypes.create_string_buffer(_ffi.OOM_PATH_BYTES)
    call(plug.tarn_torch_get_dump_on_oom, path)
    return os.fsdecode(path.value) or None


def install(settings=None, device=None):
    """Makes tarn the allocator of all CUDA tensors of this process. Further calls do nothing.

    Args:
        settings: a PYTORCH_ALLOC_CONF string, applied on top of the environment's.
        device: a tarn.Device that replaces GPU 0, for tests; by default the one that
            TARN_TORCH_DEVICE names, if set.

    Raises tarn.Error, changing nothing, when CUDA has already started and when this build of torch
    cannot receive failures.
    """
    global _installed
    with _lock:
        if _installed:
            return
        _check_torch()
        allocator = _make_allocator()
        if device is None and os.environ.get("TARN_TORCH_DEVICE"):
            device = Device(os.environ["TARN_TORCH_DEVICE"])
        if settings is not None:
            call(plug.tarn_torch_configure, settings.encode())
        else:  # report invalid environment settings now, not at the first tensor
            call(plug.tarn_torch_get_config, ctypes.byref(_ffi.Config()))
        oom_dump_path()  # likewise an invalid path
        if device is not None:
            call(plug.tarn_torch_use_device, 0, device.handle)
            _kept.append(device)
        _swap(allocator)
        _take_methods()
        _route()
        _installed = True
        _leave_at_exit()


def _check_torch():
    if torch.cuda.is_initialized():
        raise Error(
            "TARN_ERR_STATE",
            "tarn.torch.install() must come before CUDA starts: call it before the first use of a "
            "GPU, right after `import torch`",
        )
    missing = plug.tarn_torch_missing_symbol()
    if missing:
        raise Error(
            "TARN_ERR_NOT_SUPPORTED",
            f"this torch ({torch.__version__}) has no symbol {missing.decode()}: tarn could not "
            "raise torch.OutOfMemoryError in it",
        )


def _make_allocator():
    """torch's pluggable allocator for our functions."""
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        _ffi.find_library("libtarn_torch.so"), "tarn_torch_alloc", "tarn_torch_free"
    )
    inner = allocator.allocator()
    for setter, function in _SETTERS.items():
        if not hasattr(inner, setter):
            raise Error(
                "TARN_ERR_NOT_SUPPORTED",
                f"this torch ({torch.__version__}) has no {setter} for pluggable allocators",
            )
        address = ctypes.cast(getattr(plug.cdll, function), ctypes.c_void_p).value
        getattr(inner, setter)(address)
    return allocator


def _swap(allocator):
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError as error:
        raise Error(
            "TARN_ERR_STATE", f"torch did not take tarn as its allocator: {error}"
        ) from None
    _kept.append(allocator)


def _take_methods():
    """Methods that cannot be replaced keep failing with torch's own message."""
    error = _ffi.TarnError()
    status = plug.tarn_torch_take_methods(ctypes.byref(error))
    if status not in (_ffi.STATUS_OK, _ffi.STATUS_NOT_SUPPORTED):
        _ffi.check(status, error)


def _leave_at_exit():
    atexit.unregister(_leave)
    atexit.register(_leave)


def _leave():
    """Runs at interpreter exit; tensors may still be freed after this."""
    plug.tarn_torch_set_oom_observer(ctypes.cast(None, _ffi.OOM_OBSERVER))
    plug.tarn_torch_shutdown()


# Functions of torch._C, by their names without "_cuda_" and "_accelerator_".


def _open_devices():
    """Ordinals and allocators of the devices in use."""
    found = ((i, plug.tarn_torch_find_allocator(i)) for i in range(_device_count()))
    return [(i, handle) for i, handle in found if handle]


def _config():
    config = _ffi.Config()
    call(plug.tarn_torch_get_config, ctypes.byref(config))
    return config


def _memory_stats(device):
    handle = plug.tarn_torch_find_allocator(device)
    if handle:
        return stats_dict(read_stats(handle))
    limit = _config().max_split_size
    return stats_dict(_ffi.Stats(max_split_size=-1 if limit == _ffi.SIZE_UNLIMITED else limit))


def _reset_accumulated(device):
    handle = plug.tarn_torch_find_allocator(device)
    if handle:
        lib.tarn_allocator_reset_accumulated_stats(handle)


def _reset_peak(device):
    handle = plug.tarn_torch_find_allocator(device)
    if handle:
        lib.tarn_allocator_reset_peak_stats(handle)


def _pool_of(argument):
    """The pool of a snapshot request, None = all; with PyTorch's checks and texts."""
    if argument is None:
        return None
    if not isinstance(argument, tuple):
        raise TypeError("Expected tuple or None")
    if len(argument) not in (2, 3):
        raise TypeError("Expected tuple of size 2 or 3")
    if not all(isinstance(part, int) for part in argument[:2]):
        raise TypeError("mempool_id elements must be integers")
    if len(argument) == 3 and not isinstance(argument[2], bool):
        raise TypeError("include_traces must be a boolean")
    return argument[:2] if any(argument[:2]) else None


def _device_count():
    return max(torch.cuda.device_count(), 1)


def _memory_snapshot(argument=None):
    pool = _pool_of(argument)
    with_traces = argument is None or len(argument) < 3 or argument[2]
    if not _open_devices():
        return snapshots.empty(_config(), _device_count())
    return snapshots.as_dict(_device_count(), pool, with_traces)


def _dump_snapshot(filename="dump_snapshot.pickle", *args, **kwargs):
    """torch.cuda.memory._dump_snapshot, which avoids building the dictionary in Python unless other
    options need it."""
    if any(args) or any(kwargs.values()) or not _open_devices():
        return _originals["_dump_snapshot"](filename, *args, **kwargs)
    return snapshots.save(filename, _device_count())


def _usage_saver(view):
    """torch.cuda.memory._save_segment_usage or _save_memory_usage, which would download a
    script from the network."""

    def save(filename="output.svg", snapshot=None):
        taken = _memory_snapshot() if snapshot is None else snapshot
        with snapshots.loaded(taken) as handle:
            snapshots.save_flame(handle, view, filename)

    return save


def _allocation_traceback(ptr):
    """Frames of the live allocation at that address, None if unknown."""
    for segment in _memory_snapshot((0, 0, False))["segments"]:
        for block in segment["blocks"]:
            if block["address"] == ptr and block["state"] == "active_allocated":
                return block["frames"] or None
    return None


def _record_history(
    enabled="all",
    context="all",
    stacks="all",
    max_entries=sys.maxsize,
    clear_history=False,
    _compile_context=False,
    _global_record_annotations=False,
    skip_actions=(),
    record_pinned_host_memory=False,
    record_cuda=True,
):
    """torch._C._cuda_record_memory_history: older versions of torch pass fewer arguments."""
    if enabled not in (None, "state", "all"):
        raise RuntimeError("expected state to be 'state', 'all', or None")
    if context not in (None, "state", "alloc", "all"):
        raise RuntimeError("expected context to be 'state', 'alloc', 'all', or None")
    if stacks not in ("python", "all"):
        raise RuntimeError("expected stacks to be 'python', or 'all'")
    _record(
        enabled is not None,
        level=context,
        c_stacks=stacks == "all" and context is not None,
        max_entries=max_entries if enabled == "all" else 1,
        clear=clear_history,
        skip_actions=skip_actions,
        pinned=record_pinned_host_memory,
        cuda=record_cuda,
    )


def _record_history_legacy(
    enabled,
    record_context=True,
    max_entries=1,
    record_alloc_context=False,
    c_stacks=False,
    clear_history=False,
    _compile_context=False,
    _global_record_annotations=False,
    skip_actions=(),
    record_pinned_host_memory=False,
    record_cuda=True,
):
    """torch._C._cuda_record_memory_history_legacy: torch's first signature, with booleans."""
    level = "alloc" if record_alloc_context else "state" if record_context else None
    _record(
        enabled,
        level=level,
        c_stacks=c_stacks and level is not None,
        max_entries=max_entries,
        clear=clear_history,
        skip_actions=skip_actions,
        pinned=record_pinned_host_memory,
        cuda=record_cuda,
    )


def _record(enabled, level, c_stacks, max_entries, clear, skip_actions, pinned, cuda):
    """Switches the history of all devices, including those opened later."""
    if pinned:
        raise NotImplementedError(
            "torch.cuda.memory._record_memory_history(record_pinned_host_memory=True) is not "
            "supported while tarn is torch's allocator: record without it"
        )
    if not cuda:
        return
    if enabled and max_entries < 1:
        raise ValueError("torch.cuda.memory._record_memory_history needs max_entries of 1 or more")
    recording = _ffi.Recording(
        struct_size=ctypes.sizeof(_ffi.Recording),
        enabled=bool(enabled),
        clear=bool(clear),
        c_stacks=bool(c_stacks),
        level=_ffi.CONTEXT_LEVELS[level],
        max_entries=_ffi.SIZE_UNLIMITED if max_entries >= sys.maxsize else max_entries,
        skip_actions=_skip_bits(skip_actions),
    )
    call(plug.tarn_torch_record_history, ctypes.byref(recording))


def _skip_bits(actions):
    bits = 0
    for name in actions or ():
        if name in _ffi.ACTIONS:
            bits |= 1 << _ffi.ACTIONS.index(name)
        else:  # torch silently records everything
            warnings.warn(f"skip_actions: there is no action {name!r}", stacklevel=2)
    return bits


def _with_marks(name, record, stacks, python_only):
    """Torch's own switch as well, with as many arguments as this version has: it makes ranges of
    record_function and compiled regions tell torch's allocator. The allocator's part in it does
    nothing then; where it could not be taken over, torch refuses, and snapshots have no marks.
    `stacks` is the number of the argument that would prepare stacks of C."""

    def switch(*arguments):
        record(*arguments)
        if plug.tarn_torch_has_method(b"recordHistory"):
            _originals[name](*arguments[:stacks], python_only, *arguments[stacks + 1 :])

    return switch


def history_usage():
    """Contents and drop counters of the histories, one dictionary per device.

    Fields are those of struct tarn_history_usage (tarn/history.h); `python_frames` (distinct ones)
    and `python_stacks_dropped` cover all devices.
    """
    frames, dropped = ctypes.c_uint64(), ctypes.c_uint64()
    plug.tarn_torch_get_python_frames(ctypes.byref(frames), ctypes.byref(dropped))
    found = {}
    for device, _ in _open_devices():
        history = plug.tarn_torch_find_history(device)
        if history:
            found[device] = {
                **snapshots.usage(history),
                "python_frames": frames.value,
                "python_stacks_dropped": dropped.value,
            }
    return found


def _attach_observer(observer):
    """Observers receive (device, requested bytes, limit or total, free bytes) and are permanent."""
    if not callable(observer):
        raise TypeError("an out-of-memory observer must be callable")
    with _lock:
        if not _observers:
            _kept.append(_ffi.OOM_OBSERVER(_tell_observers))
            plug.tarn_torch_set_oom_observer(_kept[-1])
        _observers.append(observer)


def _tell_observers(device, size, total, free):
    for observer in list(_observers):
        observer(device, size, total, free)


def _enable(value):
    for device in range(_device_count()):
        handle = ctypes.c_void_p()
        call(plug.tarn_torch_open_allocator, device, ctypes.byref(handle))
        call(lib.tarn_allocator_set_enabled, handle, bool(value))


def _is_enabled():
    return all(lib.tarn_allocator_is_enabled(handle) for _, handle in _open_devices())


def _configure(name):
    """Torch itself reads the settings of pinned memory from the same string."""

    def configure(settings):
        call(plug.tarn_torch_configure, settings.encode())
        return _originals[name](settings)

    return configure


def _set_metadata(text):
    _ffi.check(lib.tarn_set_user_metadata(text.encode()))


def _get_metadata():
    return lib.tarn_user_metadata().decode("utf-8", "replace")


def _annotate(ptr, text):
    error = None
    for _, handle in _open_devices():
        try:
            return call(lib.tarn_allocator_annotate, handle, ptr, text.encode())
        except Error as refused:
            error = refused
    raise error or Error("TARN_ERR_INVALID_POINTER", f"nothing is allocated at {ptr:#x}")


# Functions of torch._C, where the version of torch has them.
_ROUTES = {
    "_cuda_memoryStats": _memory_stats,
    "_cuda_resetAccumulatedMemoryStats": _reset_accumulated,
    "_cuda_resetPeakMemoryStats": _reset_peak,
    "_cuda_memorySnapshot": _memory_snapshot,
    "_cuda_record_memory_history": _with_marks(
        "_cuda_record_memory_history", _record_history, 2, "python"
    ),
    "_cuda_record_memory_history_legacy": _with_marks(
        "_cuda_record_memory_history_legacy", _record_history_legacy, 4, False
    ),
    "_cuda_isHistoryEnabled": lambda: plug.tarn_torch_is_recording(),
    "_cuda_allocationTraceback": _allocation_traceback,
    "_cuda_attach_out_of_memory_observer": _attach_observer,
    "_cuda_getMemoryFraction": lambda device: plug.tarn_torch_get_memory_fraction(device),
    "_cuda_cudaCachingAllocator_enable": _enable,
    "_cuda_cudaCachingAllocator_is_enabled": _is_enabled,
    "_cuda_cudaCachingAllocator_set_allocator_settings": _configure(
        "_cuda_cudaCachingAllocator_set_allocator_settings"
    ),
    "_accelerator_setAllocatorSettings": _configure("_accelerator_setAllocatorSettings"),
    "_accelerator_getDeviceStats": _memory_stats,
    "_accelerator_resetAccumulatedStats": _reset_accumulated,
    "_accelerator_resetPeakStats": _reset_peak,
    "_cuda_setMemoryMetadata": _set_metadata,
    "_cuda_getMemoryMetadata": _get_metadata,
    "_cuda_memoryMetadataSupported": lambda: True,
    "_cuda_annotateMemory": _annotate,
}


# Functions of torch.cuda.memory itself.
_MEMORY_ROUTES = {
    "_dump_snapshot": _dump_snapshot,
    "_save_segment_usage": _usage_saver(_ffi.FLAME_SEGMENTS),
    "_save_memory_usage": _usage_saver(_ffi.FLAME_MEMORY),
}


def _route():
    for name, function in _ROUTES.items():
        original = getattr(torch._C, name, None)
        if original is not None:
            _originals[name] = original
            setattr(torch._C, name, function)
    for name, function in _MEMORY_ROUTES.items():
        original = getattr(torch.cuda.memory, name, None)
        if original is not None:
            _originals[name] = original
            setattr(torch.cuda.memory, name, function)


def mempool(**options):
    """A torch.cuda.MemPool with segments from tarn, while PyTorch's own allocator stays.

    Options are those of torch.cuda.MemPool (use_on_oom, no_split). If a segment cannot be
    allocated, PyTorch frees memory and retries; `last_error()` has the reason.
    """
    if _installed:
        raise Error(
            "TARN_ERR_STATE",
            "tarn is the allocator of this process already: use torch.cuda.MemPool() as it is",
        )
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        _ffi.find_library("libtarn_torch.so"), "tarn_torch_pool_alloc", "tarn_torch_pool_free"
    )
    with _lock:
        _kept.append(allocator)  # segments may outlive the pool
        _leave_at_exit()
    return torch.cuda.MemPool(allocator.allocator(), **options)
