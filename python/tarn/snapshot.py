# SPDX-License-Identifier: MIT
"""Snapshots of the devices in use: files, and the dictionaries of torch.cuda.memory._snapshot()."""

import contextlib
import ctypes
import os
import pickle

from tarn import _ffi
from tarn._ffi import call, lib


@contextlib.contextmanager
def made(function, *arguments):
    """Context manager: the handle of a snapshot that `function` creates."""
    handle = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(handle))
    try:
        yield handle
    finally:
        lib.tarn_snapshot_destroy(handle)


def captured(allocators, device_count, pool=None):
    """A snapshot of these allocators, by their handles. `pool` selects the segments of one pool;
    None = all."""
    options = _ffi.CaptureOptions(
        struct_size=ctypes.sizeof(_ffi.CaptureOptions),
        only_pool=pool is not None,
        pool=_ffi.PoolId(*(pool or (0, 0))),
        device_count=device_count,
    )
    sources = (_ffi.CaptureSource * len(allocators))(
        *(_ffi.CaptureSource(handle, None) for handle in allocators)
    )
    return made(lib.tarn_snapshot_capture, sources, len(allocators), ctypes.byref(options))


def loaded(dictionary):
    """A snapshot from the dictionary of torch.cuda.memory._snapshot()."""
    data = pickle.dumps(dictionary, protocol=4)
    return made(lib.tarn_snapshot_load_memory, data, len(data), None)


def save_dict(path, dictionary):
    """Writes PyTorch's dictionary to a file: a pickle, or JSON for *.json; compressed for *.gz and
    *.zst."""
    with loaded(dictionary) as handle:
        call(lib.tarn_snapshot_save, handle, os.fsencode(path))


def dict_of(handle):
    """A snapshot as PyTorch's dictionary."""
    return pickle.loads(_ffi.written(lib.tarn_snapshot_write, handle, _ffi.SNAPSHOT_PICKLE))


def save_with(filename, write, *arguments):
    """Writes a file by a function of the library that takes a writer and an error last."""
    file = ctypes.c_void_p()
    call(lib.tarn_file_create, os.fsencode(filename), ctypes.byref(file))
    writer = lib.tarn_file_writer(file)
    error = _ffi.TarnError()
    status = write(*arguments, ctypes.byref(writer), ctypes.byref(error))
    _ffi.check(lib.tarn_file_finish(file, status, ctypes.byref(error)), error)


def save_flame(handle, view, filename):
    """Writes a flame graph of a snapshot, an SVG picture."""
    save_with(filename, lib.tarn_report_flame, handle, view, None)


def empty(config, device_count):
    """PyTorch's dictionary while no device is in use."""
    return {
        "segments": [],
        "device_traces": [[] for _ in range(device_count)],
        "allocator_settings": settings(config),
        "external_annotations": [],
    }


def usage(handle):
    """Contents and drop counters of a history: the fields of struct tarn_history_usage."""
    found = _ffi.HistoryUsage(struct_size=ctypes.sizeof(_ffi.HistoryUsage))
    lib.tarn_history_get_usage(handle, ctypes.byref(found))
    return {name: getattr(found, name) for name, _ in found._fields_[1:]}


def settings(config):
    """The snapshot's `allocator_settings`; unlimited is -1."""
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
