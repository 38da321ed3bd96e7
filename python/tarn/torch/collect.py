# SPDX-License-Identifier: MIT
"""Collects the memory of a job's ranks for `tarn ranks`: each rank writes its own files.

    from tarn.torch.collect import Collector

    torch.cuda.memory._record_memory_history()
    collector = Collector("/shared/dumps", layout={"pp": 1, "tp": 3}, steps=[100, 1000])
    collector.at_oom()            # before torch.OutOfMemoryError is raised
    for batch in batches:
        train(batch)
        collector.step()          # writes after steps 100 and 1000
    collector.write()             # now

Rank, host, the place in the parallel layout and the step are labels of what is written and part of
its name, "/shared/dumps/host=n12,pp=1,rank=12,step=100,tp=3.tsum". It works with tarn as torch's
allocator and without. A collector belongs to one thread; observers may write from others.
"""

import ctypes
import os
import re
import signal
import socket
import threading
import warnings

import torch

from tarn import _ffi
from tarn import snapshot as snapshots
from tarn._ffi import call, lib
from tarn.errors import Error

__all__ = ["Collector"]

RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
OOM_FILES = 4  # of one process: a job that goes on may fail many times


def _rank():
    """That of torch.distributed, or of the launcher; "0" of a job with one process."""
    distributed = getattr(torch, "distributed", None)
    if distributed and distributed.is_available() and distributed.is_initialized():
        return str(distributed.get_rank())
    return next((os.environ[name] for name in RANKS if os.environ.get(name)), "0")


def _mesh_place(mesh):
    """The place of this rank in a torch.distributed.device_mesh.DeviceMesh, by the names of its
    dimensions."""
    return {name: mesh.get_local_rank(name) for name in mesh.mesh_dim_names or ()}


def _label(key, value):
    """A label that `tarn` accepts and that a name of a file can have."""
    if not re.fullmatch(r"[A-Za-z0-9_]{1,64}", key):
        raise Error("TARN_ERR_INVALID_ARGUMENT", f"{key!r} is no label: letters, digits and _")
    return re.sub(r"[^A-Za-z0-9._-]", "_", str(value))[:64]


class Collector:
    """Writes what this rank holds.

    folder: where; it is created. layout: more labels, such as {"pp": 1}. mesh: a DeviceMesh whose
    dimensions are labels as well. steps: numbers of steps after which step() writes, counted from
    1; every: also after each that many. summaries: summaries of some ten kilobytes, else snapshots.
    suffix: of their names, which .gz or .zst compresses.

    tarn.Error for a key that is no label, OSError for a folder that cannot be made.
    """

    def __init__(
        self, folder, layout=None, mesh=None, steps=(), every=0, summaries=True, suffix=None
    ):
        labels = {"rank": _rank(), "host": socket.gethostname()}
        labels.update(_mesh_place(mesh) if mesh is not None else {})
        labels.update(layout or {})
        self.folder = os.fspath(folder)
        self.labels = {key: _label(key, value) for key, value in labels.items()}
        self.steps = frozenset(steps)
        self.every = every
        self.summaries = summaries
        self.suffix = suffix or (".tsum" if summaries else ".pickle")
        self.done = 0  # steps
        self._ooms = 0
        self._attached = False
        self._lock = threading.RLock()  # a signal may come while it writes
        os.makedirs(self.folder, exist_ok=True)

    def step(self):
        """Call it at the end of each step. Returns the path of what was written, or None."""
        self.done += 1
        due = self.done in self.steps or (self.every and self.done % self.every == 0)
        return self.write() if due else None

    def write(self, **labels):
        """Writes now; `labels` are further ones. Returns the path. A file of that name is replaced.
        tarn.Error when nothing can be written, and of a summary when no history was recorded."""
        more = {key: _label(key, value) for key, value in labels.items()}
        found = {**self.labels, "step": str(self.done), **more}
        name = ",".join(f"{key}={value}" for key, value in sorted(found.items()))
        path = os.path.join(self.folder, name + self.suffix)
        with self._lock, snapshots.loaded(torch.cuda.memory._snapshot()) as handle:
            if self.summaries:
                _write_summary(handle, path, name, found)
            else:
                call(lib.tarn_snapshot_save, handle, os.fsencode(path))
        return path

    def at_oom(self):
        """From now on writes when memory runs out, on the failing thread and before the error is
        raised, with the label oom=1 and so on, at most 4 times. What fails then is a warning. Not
        with tarn through torch's pluggable allocator, which has no observers."""
        if not self._attached:
            self._attached = True
            torch.cuda._lazy_call(
                lambda: torch._C._cuda_attach_out_of_memory_observer(self._observe)
            )

    def on_signal(self, number):
        """From now on writes when the process gets this signal, between two lines of the main
        thread, from which it must be called: `kill -USR2 PID`. What fails then is a warning."""
        signal.signal(number, lambda *_: self._try())

    def _observe(self, *_numbers):
        if self._ooms < OOM_FILES:
            self._ooms += 1
            self._try(oom=self._ooms)

    def _try(self, **labels):
        """Must not replace an error that is about to be raised."""
        try:
            self.write(**labels)
        except Exception as error:  # noqa: BLE001
            warnings.warn(f"nothing was collected in {self.folder}: {error}", stacklevel=1)


def _write_summary(snapshot, path, name, labels):
    fleet = ctypes.c_void_p()
    items = (_ffi.Label * len(labels))(
        *(_ffi.Label(key.encode(), value.encode()) for key, value in sorted(labels.items()))
    )
    options = _ffi.SummaryOptions(
        struct_size=ctypes.sizeof(_ffi.SummaryOptions), label_count=len(labels), labels=items
    )
    call(lib.tarn_fleet_create, ctypes.byref(fleet))
    try:
        call(lib.tarn_fleet_add, fleet, snapshot, name.encode(), ctypes.byref(options))
        snapshots.save_with(path, lib.tarn_fleet_write, fleet)
    finally:
        lib.tarn_fleet_destroy(fleet)
