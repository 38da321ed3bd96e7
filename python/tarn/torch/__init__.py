# SPDX-License-Identifier: MIT
"""tarn as the allocator of PyTorch's CUDA tensors.

    import tarn.torch
    tarn.torch.install()      # before CUDA starts: before the first tensor on a GPU

or, without a change to the program, `python -m tarn.torch PROGRAM ARGUMENTS...`.

`install()` gives torch an object of its own allocator class, from a library that was compiled
against the headers of this torch; torch's functions then work as they are. Where there is no such
library and none can be compiled, torch's pluggable allocator is used, which can do less.

Alternatively, `mempool()` keeps PyTorch's own allocator and gives one torch.cuda.MemPool segments
from tarn.
"""

import ctypes
import os
import threading
import warnings

import torch

from tarn import _ffi
from tarn import allocator as allocators
from tarn import snapshot as snapshots
from tarn._ffi import call, lib
from tarn.allocator import Device
from tarn.errors import Error
from tarn.torch import _class, _devices, _fallback, _routes

__all__ = [
    "build",
    "dump_on_oom",
    "history_usage",
    "install",
    "is_installed",
    "kind",
    "last_error",
    "mempool",
    "oom_dump_path",
    "is_asleep",
    "page_stats",
    "sleep",
    "sleep_stats",
    "tag",
    "trim",
    "uninstall",
    "wake",
]

_lock = threading.Lock()
_kept = []  # objects that torch knows only by address
_kind = None  # "class" or "fallback" once installed
_tags = {}  # torch.cuda.MemPool by tag: as long as the process
_dump = {"path": None, "attached": False}


def _renew_lock():
    """Replaces the lock in a forked child, where the thread that may hold it does not exist."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def is_installed():
    """Whether tarn is the allocator of this process."""
    return _kind is not None


def kind():
    """"class" or "fallback", the way in which tarn is installed; None if it is not."""
    return _kind


def uninstall():
    """Always fails: torch keeps one allocator from the first tensor to the end of the process."""
    raise Error(
        "TARN_ERR_NOT_SUPPORTED",
        "tarn cannot be uninstalled: torch keeps its allocator until the process ends",
    )


def last_error():
    """Text of the latest failure that could not be raised, or None: in a destructor, or of a
    segment of mempool()."""
    return _devices.last_error()


def build(verbose=False):
    """Compiles the library with the class for this torch, unless there is one; returns its path.

    Raises tarn.Error with the reason when it cannot be compiled.
    """
    return _class.find() or _class.compile_library(verbose)


def install(settings=None, device=None):
    """Makes tarn the allocator of all CUDA tensors of this process. Further calls do nothing.

    Args:
        settings: a PYTORCH_ALLOC_CONF string, applied on top of the environment's.
        device: a tarn.Device that replaces GPU 0, for tests; by default the one that
            TARN_TORCH_DEVICE names, if set.

    Compiles the library with the class first if need be, once per version of torch. If that fails,
    a warning says why, and the fallback is used (TARN_TORCH_FALLBACK=1: always).

    Raises tarn.Error, changing nothing, when CUDA has already started.
    """
    global _kind
    with _lock:
        if _kind:
            return
        if torch.cuda.is_initialized():
            raise Error(
                "TARN_ERR_STATE",
                "tarn.torch.install() must come before CUDA starts: call it before the first use "
                "of a GPU, right after `import torch`",
            )
        chosen = _choose()
        if device is None and os.environ.get("TARN_TORCH_DEVICE"):
            device = Device(os.environ["TARN_TORCH_DEVICE"])
        if settings is not None:
            _devices.configure(settings)
        else:  # report invalid environment settings now, not at the first tensor
            _devices.config()
        path = _expanded(None)  # likewise an invalid path
        if device is not None:
            _devices.use(0, device.handle)
            _kept.append(device)
        _kept.append(chosen.install())
        _routes.take(chosen)
        _kind = "class" if chosen is _class else "fallback"
        if path:
            _use_dump_path(path)


def _choose():
    """The module of the class, or that of the fallback."""
    if os.environ.get("TARN_TORCH_FALLBACK", "0") not in ("", "0"):
        return _fallback
    try:
        _class.load(build())
        return _class
    # Of a torch that is not as expected: no compiled_with_cxx11_abi, a version of another form.
    except (Error, ImportError, OSError, AttributeError, IndexError, ValueError) as error:
        warnings.warn(
            f"tarn's allocator class is not available for torch {torch.__version__} ({error}): "
            "using torch's pluggable allocator, which can do less (docs/pytorch.md)",
            stacklevel=3,
        )
        return _fallback


# Snapshots when memory runs out.


def _expanded(path):
    """The path with its %p and %r filled in; None: that of TARN_DUMP_ON_OOM, "" if it is unset."""
    text = ctypes.create_string_buffer(_ffi.OOM_PATH_BYTES)
    call(lib.tarn_oom_dump_expand, None if path is None else os.fsencode(path), text)
    return os.fsdecode(text.value)


def dump_on_oom(path):
    """Writes a snapshot of all devices to this path when memory runs out, on the failing thread
    and before torch.OutOfMemoryError is raised. None disables it.

    In the path, %p is the process id, %r its rank (RANK and the like), %% a per cent sign. A name
    that ends in .json gives JSON. The default path is that of TARN_DUMP_ON_OOM, if it is set.
    """
    expanded = None if path is None else _expanded(path)
    with _lock:
        _use_dump_path(expanded)


def oom_dump_path():
    """Path of the next out-of-memory snapshot; None if disabled."""
    return _dump["path"]


def _use_dump_path(path):
    is_async = path and _devices.config().backend == _ffi.BACKEND_ASYNC
    if path and (_kind == "fallback" or is_async):
        which = "backend:cudaMallocAsync" if is_async else "torch's pluggable allocator"
        raise Error(
            "TARN_ERR_NOT_SUPPORTED",
            f"{which} has no observers: no snapshot can be written when memory runs out",
        )
    _dump["path"] = path
    if path and not _dump["attached"]:
        _dump["attached"] = True
        torch.cuda._lazy_call(
            lambda: torch._C._cuda_attach_out_of_memory_observer(_write_dump)
        )


def _write_dump(*_numbers):
    """An observer. What fails here must not replace the error that is about to be raised."""
    path = _dump["path"]
    try:
        if path:
            snapshots.save_dict(path, torch.cuda.memory._snapshot())
    except Exception as error:  # noqa: BLE001
        warnings.warn(f"no snapshot was written to {path}: {error}", stacklevel=1)


# What libtarn knows and torch has no function for.


def history_usage():
    """Contents and drop counters of the histories, one dictionary per device: the fields of struct
    tarn_history_usage (tarn/history.h)."""
    if _kind != "class":
        return {}
    found = ((i, _devices.find_history(i)) for i in range(_routes.device_count()))
    return {device: snapshots.usage(history) for device, history in found if history}


def _allocator_of(device):
    """The allocator of that GPU; None when it was not used yet, or tarn is not installed."""
    return _devices.find(device) if _kind else None


def page_stats():
    """What policy:compact does, one dictionary per device: the fields of struct tarn_page_stats
    (tarn/pages.h)."""
    found = ((i, _allocator_of(i)) for i in range(_routes.device_count()))
    return {device: allocators.page_stats(handle) for device, handle in found if handle}


def trim(target, device=0):
    """Returns cached memory of the GPU until at most `target` bytes are reserved, or nothing free
    is left; returns how many bytes are reserved. torch.cuda.empty_cache() returns all of it."""
    handle, reserved = _allocator_of(device), ctypes.c_uint64()
    if not handle:
        return 0
    call(lib.tarn_allocator_trim, handle, target, ctypes.byref(reserved))
    return reserved.value


def tag(name, device=None):
    """A context in which this thread's tensors get memory under that tag, apart from all others:
    a torch.cuda.MemPool of its own, which can sleep. `device`: the current one by default.

        with tarn.torch.tag("weights"):
            model = build().cuda()
        tarn.torch.sleep("weights")  # gives its memory back
        tarn.torch.wake("weights")   # the same contents at the same addresses
    """
    with _lock:
        if name not in _tags:
            _tags[name] = torch.cuda.MemPool()
    return torch.cuda.use_mem_pool(_tags[name], device)


def _tagged(name, device):
    """The device's allocator, and the id of the tag's pool."""
    handle = _allocator_of(device)
    if name not in _tags or not handle:
        raise Error("TARN_ERR_NOT_FOUND", f"nothing was allocated under the tag {name!r}")
    return handle, _tags[name].id


def sleep(name, discard=False, keep_host=False, device=0):
    """Gives the memory under the tag back to the GPU; its addresses stay. Tensors keep their
    contents, in pinned memory of the host meanwhile, unless they are discarded. Waits for all work
    on the GPU. No work may use the tensors until wake(). With keep_host the host's memory stays for
    the next time: pinning it takes longer than copying.

    Needs policy:compact or expandable_segments:True. Also works for memory that captured graphs
    use. Raises tarn.Error with the reason, changing nothing.
    """
    handle, pool = _tagged(name, device)
    allocators.sleep(handle, pool, discard, keep_host)


def wake(name, device=0):
    """Brings the memory under the tag back at the same addresses, with its contents unless they
    were discarded. Raises tarn.OutOfMemoryError if there is no room: it is still asleep then."""
    handle, pool = _tagged(name, device)
    call(lib.tarn_allocator_wake, handle, _ffi.PoolId(*pool))


def is_asleep(name, device=0):
    """Whether memory under the tag is asleep."""
    handle, pool = _tagged(name, device)
    return lib.tarn_allocator_is_asleep(handle, _ffi.PoolId(*pool))


def sleep_stats():
    """What sleeps, and how long sleeping and waking took, one dictionary per device: the fields of
    struct tarn_sleep_stats (tarn/sleep.h)."""
    found = ((i, _allocator_of(i)) for i in range(_routes.device_count()))
    return {device: allocators.sleep_stats(handle) for device, handle in found if handle}


def mempool(**options):
    """A torch.cuda.MemPool with segments from tarn, while PyTorch's own allocator stays.

    Options are those of torch.cuda.MemPool (use_on_oom, no_split). If a segment cannot be
    allocated, PyTorch frees memory and retries; `last_error()` has the reason.
    """
    if _kind:
        raise Error(
            "TARN_ERR_STATE",
            "tarn is the allocator of this process already: use torch.cuda.MemPool() as it is",
        )
    allocator = _fallback.pluggable("tarn_torch_pool_alloc", "tarn_torch_pool_free")
    with _lock:
        _kept.append(allocator)  # segments may outlive the pool
    return torch.cuda.MemPool(allocator.allocator(), **options)


if os.environ.get("TARN_TORCH", "0") not in ("", "0"):
    install()
