# SPDX-License-Identifier: MIT
"""Snapshots of the devices in use: files, and the dictionaries of torch.cuda.memory._snapshot()."""

import contextlib
import ctypes
import os
import pickle

from tarn import _ffi
from tarn._ffi import call, lib, plug


@contextlib.contextmanager
def captured(device_count, pool=None, with_traces=True):
    """A snapshot's handle. `pool` limits it to the segments of one; None = all."""
    options = _ffi.CaptureOptions(
        struct_size=ctypes.sizeof(_ffi.CaptureOptions),
        without_traces=not with_traces,
        only_pool=pool is not None,
        pool=_ffi.PoolId(*(pool or (0, 0))),
        device_count=device_count,
    )
    handle = ctypes.c_void_p()
    call(plug.tarn_torch_capture, ctypes.byref(options), ctypes.byref(handle))
    try:
        yield handle
    finally:
        lib.tarn_snapshot_destroy(handle)


def save(path, device_count):
    """Writes a file without building it in Python first: a pickle, or JSON for *.json."""
    with captured(device_count) as handle:
        call(lib.tarn_snapshot_save, handle, os.fsencode(path))


def as_dict(device_count, pool=None, with_traces=True):
    """The dictionary that PyTorch gives; equal frames and stacks are one object."""
    pieces = []

    def write(_context, data, size):
        pieces.append(ctypes.string_at(data, size))
        return _ffi.STATUS_OK

    writer = _ffi.Writer(_ffi.WRITE(write), None)
    with captured(device_count, pool, with_traces) as handle:
        call(lib.tarn_snapshot_write, handle, _ffi.SNAPSHOT_PICKLE, ctypes.byref(writer))
    return pickle.loads(b"".join(pieces))


def empty(config, device_count):
    """The same while no device is in use."""
    return {
        "segments": [],
        "device_traces": [[] for _ in range(device_count)],
        "allocator_settings": settings(config),
        "external_annotations": [],
    }


def usage(handle):
    """What a history holds and what it had to drop: the fields of struct tarn_history_usage."""
    found = _ffi.HistoryUsage(struct_size=ctypes.sizeof(_ffi.HistoryUsage))
    lib.tarn_history_get_usage(handle, ctypes.byref(found))
    return {name: getattr(found, name) for name, _ in found._fields_[1:]}


def settings(config):
    """The snapshot's `allocator_settings`. Unlimited shows as -1."""
    max_split_size = config.max_split_size
    return {
        "PYTORCH_CUDA_ALLOC_CONF": config.text.decode("utf-8", "replace"),
        "max_split_size": -1 if max_split_size == _ffi.SIZE_UNLIMITED else max_split_size,
        "garbage_collection_threshold": config.garbage_collection_threshold,
        "expandable_segments": config.expandable_segments,
        "pinned_num_register_threads": config.pinned_num_register_threads,
        "release_lock_on_cudamalloc": config.release_lock_on_device_alloc,
        "pinned_use_cuda_host_register": config.pinned_use_host_register,
        "roundup_power2_divisions": {
            str(2**i): divisions for i, divisions in enumerate(config.roundup_power2_divisions)
        },
        "graph_capture_record_stream_reuse": config.graph_capture_record_stream_reuse,
    }
