# SPDX-License-Identifier: MIT
"""The functions of torch that are replaced when tarn is installed, because torch asks nobody else:
its settings, and two flame graphs for which it would download a script."""

import torch

from tarn import _ffi
from tarn import allocator as allocators
from tarn import snapshot as snapshots
from tarn.torch import _devices

_originals = {}  # name: torch's function


def device_count():
    return max(torch.cuda.device_count(), 1)


def _configure(name):
    """Torch itself reads the settings of pinned memory from the same string. What one of the two
    does not know changes neither."""

    def configure(settings):
        allocators.config_of(settings)
        result = _originals[name](settings)
        _devices.configure(settings)
        return result

    return configure


def _dump_snapshot(filename="dump_snapshot.pickle", *args, **kwargs):
    """torch.cuda.memory._dump_snapshot; JSON for *.json, compressed for *.gz and *.zst."""
    if not str(filename).endswith((".json", ".gz", ".zst")):
        return _originals["_dump_snapshot"](filename, *args, **kwargs)
    return snapshots.save_dict(filename, torch.cuda.memory._snapshot(*args, **kwargs))


def _usage_saver(view):
    """torch.cuda.memory._save_segment_usage or _save_memory_usage."""

    def save(filename="output.svg", snapshot=None):
        taken = torch.cuda.memory._snapshot() if snapshot is None else snapshot
        with snapshots.loaded(taken) as handle:
            snapshots.save_flame(handle, view, filename)

    return save


def _replace(module, name, function):
    original = getattr(module, name, None)
    if original is not None:
        _originals[name] = original
        setattr(module, name, function)


def take(chosen):
    """`chosen`: the module by which tarn is installed."""
    for name in (
        "_cuda_cudaCachingAllocator_set_allocator_settings",
        "_accelerator_setAllocatorSettings",
    ):
        _replace(torch._C, name, _configure(name))
    for name, function in getattr(chosen, "routes", {}).items():
        _replace(torch._C, name, function)
    _replace(torch.cuda.memory, "_dump_snapshot", _dump_snapshot)
    _replace(torch.cuda.memory, "_save_segment_usage", _usage_saver(_ffi.FLAME_SEGMENTS))
    _replace(torch.cuda.memory, "_save_memory_usage", _usage_saver(_ffi.FLAME_MEMORY))
