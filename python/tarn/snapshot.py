# SPDX-License-Identifier: MIT
"""What an allocator holds now, as the dictionaries of torch.cuda.memory._snapshot()."""

import ctypes

from tarn import _ffi
from tarn._ffi import check, plug


def copy_rows(handle, pool=None):
    """Segments, each followed by its blocks. Others may allocate meanwhile, so ask until the rows
    of one moment fit."""
    count = ctypes.c_size_t()
    capacity = 1024
    pool_id = None if pool is None else ctypes.byref(_ffi.PoolId(*pool))
    while True:
        rows = (_ffi.Row * capacity)()
        check(
            plug.tarn_torch_copy_walk(handle, pool_id, rows, capacity, ctypes.byref(count))
        )
        if count.value <= capacity:
            return rows[: count.value]
        capacity = count.value + count.value // 4


def _block(row):
    block = row.as_.block
    state = "active_pending_free" if block.active else "inactive"
    return {
        "address": block.address,
        "size": block.size,
        "requested_size": block.requested_size,
        "state": "active_allocated" if block.allocated else state,
        "frames": [],
    }


def _segment(row, device):
    segment = row.as_.segment
    return {
        "device": device,
        "address": segment.address,
        "total_size": segment.total_size,
        "allocated_size": segment.allocated_size,
        "active_size": segment.active_size,
        "requested_size": segment.requested_size,
        "stream": segment.stream,
        "segment_type": "large" if segment.is_large else "small",
        "segment_pool_id": (segment.pool.first, segment.pool.second),
        "is_expandable": segment.is_expandable,
        "frames": [],
        "blocks": [],
    }


def segments(handle, device, pool=None):
    """Segments of one allocator, by address."""
    found = []
    for row in copy_rows(handle, pool):
        if row.is_segment:
            found.append(_segment(row, device))
        else:
            found[-1]["blocks"].append(_block(row))
    return found


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
