# SPDX-License-Identifier: MIT
"""Memory by module, category and time: MemTracker.

    from tarn.tracker import MemTracker

    tracker = MemTracker()
    tracker.track_external(model, optimizer, batch)
    with tracker:
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
    tracker.display_snapshot("peak", units="MiB")
    tracker.display_modulewise_snapshots(depth=3, units="MiB")

The interface and the figures are those of torch.distributed._tools.mem_tracker.MemTracker; the
bookkeeping is done in C (tarn/tracker.h). Torch's hooks record events, which are passed to C in
batches. docs/tracker.md lists the differences.
"""

import collections
import ctypes
import enum
import functools
import json
import math
import os
import struct
import threading
import warnings
import weakref

import torch
from torch import nn, optim
from torch.autograd.graph import register_multi_grad_hook
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_flatten

from tarn import _ffi
from tarn._ffi import call, lib
from tarn.errors import Error

__all__ = ["MemTracker", "RefType", "State"]

_EVENTS_AT_ONCE = 4096

_trackers = weakref.WeakSet()


def _renew_locks():
    """Replaces the locks in a forked child, where the threads that may hold them do not exist."""
    for tracker in list(_trackers):
        tracker._flushing = threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)

_CREATE, _CLASSIFY, _RESIZE, _DELETE = map(
    _ffi.TRACK_KINDS.index, ("CREATE", "CLASSIFY", "RESIZE", "DELETE")
)
_ENTER, _INPUT, _READY, _OUTPUT, _LEAVE = map(
    _ffi.TRACK_KINDS.index, ("ENTER", "INPUT", "READY", "OUTPUT", "LEAVE")
)
_ENTER_BACKWARD, _LEAVE_BACKWARD, _END_BACKWARD = map(
    _ffi.TRACK_KINDS.index, ("ENTER_BACKWARD", "LEAVE_BACKWARD", "END_BACKWARD")
)
_BEGIN_STEP, _END_STEP, _OP_DONE, _START = map(
    _ffi.TRACK_KINDS.index, ("BEGIN_STEP", "END_STEP", "OP_DONE", "START")
)
_RESET_MODULES, _FORGET_MODULE = map(
    _ffi.TRACK_KINDS.index, ("RESET_MODULES", "FORGET_MODULE")
)

_BACKWARD = _ffi.TRACK_BACKWARD
_AUTO = _ffi.TRACK_AUTO

_EVENT_BYTES = 32
_pack = struct.Struct("=HHIIIQQ").pack  # struct tarn_track_event

# Whether gradients are being computed on this thread: ModuleTracker.is_bw without the overhead
# of the property.
_graph_task = torch._C._current_graph_task_id


class _Text(str, enum.Enum):
    """String enumerations whose members and plain texts are equal as dictionary keys."""

    __hash__ = str.__hash__

    def __str__(self):
        return self.value


class RefType(_Text):
    """Categories of memory, as PyTorch's _MemRefType."""

    PARAM = "Parameter"
    BUFFER = "Buffer"
    GRAD = "Gradient"
    ACT = "Activation"
    TEMP = "Temp"
    OPT = "Optstate"
    OTH = "Other"


class State(_Text):
    """States of a module, as PyTorch's _ModState."""

    PEAK_FW = "Peak-Forward"
    PRE_FW = "Pre-Forward"
    POST_FW = "Post-Forward"
    PEAK_BW = "Peak-Backward"
    PRE_BW = "Pre-Backward"
    PRE_FW_AC = "Pre-Forward-AC"
    POST_FW_AC = "Post-Forward-AC"
    POST_BW = "Post-Backward"


_REF_TYPES = tuple(RefType)
_PARAM, _BUFFER, _GRAD, _OPT, _OTHER = 0, 1, 2, 5, 6
_DEVICE, _MODULE = 0, 3  # enum tarn_track_names
_UNITS = {"B": 2, "KiB": 3, "MiB": 4, "GiB": 5}  # enum tarn_units
_MOMENTS = {"current": 0, "peak": 1, "moment": 2}
_STATES = tuple(State)


class _Row(dict):
    """Bytes by RefType, and "Total"; members of PyTorch's own enumeration work as keys too."""

    def __missing__(self, key):
        if isinstance(key, enum.Enum) and key.value in self:
            return self[key.value]
        raise KeyError(key)


class _Storage(weakref.ref):
    """A known, live storage."""

    __slots__ = ("key", "number", "size")


class _Module(weakref.ref):
    __slots__ = ("key", "number")


class ModuleStats:
    """Statistics of a module: PyTorch's _ModMemStats."""

    def __init__(self, stats, snapshots, name):
        self.mod_fqn = name
        self.parameter_mem = stats.parameter_bytes
        self.buffer_mem = stats.buffer_bytes
        self.input_mem = stats.input_bytes
        self.output_mem = None if stats.output_bytes < 0 else stats.output_bytes
        self.snapshots = snapshots


def _granularity():
    """PyTorch's allocator rounds up to 512 bytes, unless its cache is disabled."""
    return 512 if int(os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", 0)) == 0 else 1


def _storages_of(tensor):
    """All storages of a tensor, including those inside wrapper subclasses."""
    if not is_traceable_wrapper_subclass(tensor):
        return (tensor.untyped_storage(),)
    found = {}
    left = [tensor]
    while left:
        inner = left.pop()
        if is_traceable_wrapper_subclass(inner):
            left.extend(getattr(inner, name) for name in inner.__tensor_flatten__()[0])
        elif hasattr(inner, "untyped_storage"):
            storage = inner.untyped_storage()
            found[id(storage)] = storage
        else:
            warnings.warn(
                "Expected a tensor or a traceable wrapper-subclass of tensor, but got "
                f"{type(inner)}",
                category=UserWarning,
                stacklevel=2,
            )
    return tuple(found.values())


def _tensors_in(tree):
    if isinstance(tree, torch.Tensor):
        return (tree,)
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


class MemTracker(TorchDispatchMode):
    """Tracks storages by category and module within its context.

    Args:
        all_storages: visit every storage of a tensor that has several; PyTorch stops at the first
            one that is already known.
        one_iteration: calling a model again without reset_mod_stats() is an error, as in PyTorch.
            By default it starts a new iteration (display_iterations).
        calls_kept: number of newest calls to keep per state and module; 0 keeps all.
        label_allocations: events in the allocator's history carry the name of the innermost module
            as user metadata.

    Register objects that exist before the context is entered with track_external. A tracker
    serves one model on the threads that run it; its functions may be called from any thread.
    """

    def __init__(
        self, *, all_storages=False, one_iteration=False, calls_kept=0, label_allocations=False
    ):
        super().__init__()
        options = _ffi.TrackerOptions(
            struct_size=ctypes.sizeof(_ffi.TrackerOptions),
            calls_kept=calls_kept,
            granularity=_granularity(),
            all_storages=True,  # this class selects the storages
            one_iteration=one_iteration,
        )
        handle = ctypes.c_void_p()
        call(lib.tarn_tracker_create, ctypes.byref(options), ctypes.byref(handle))
        self._handle = handle
        self._free = weakref.finalize(self, lib.tarn_tracker_destroy, handle)
        self._all_storages = all_storages
        self._one_iteration = one_iteration
        self._labels = label_allocations

        # Appending to it is one step for the interpreter: callbacks of dying storages come at any
        # moment, backward's hooks on other threads.
        self._events = collections.deque()
        self._note = self._events.append
        self._flushing = threading.Lock()
        _trackers.add(self)

        self._storages = {}  # id of a storage object: _Storage
        self._next_storage = 0
        self._modules = {}  # id of a module: _Module
        self._next_module = 0
        self._with_stats = set()  # numbers of modules
        self._names = {}  # number of a module: its name
        self._named_below = set()  # numbers of modules whose children have names
        self._name_ids = {}
        self._device_ids = {}
        self._active = []  # names, for labels

        self._depth = 0
        self._hooks = []
        self._grad_hooks = {}  # id of a parameter: (weak reference, handles)
        self._at_end = []  # ends of modules whose inputs need no gradient
        self._awaits_end = False
        self._resize = None

    # ---- events ----

    def _flush(self):
        """Passes all pending events to the library."""
        with self._flushing:
            events = self._events
            failed = None
            while events:
                count = min(len(events), _EVENTS_AT_ONCE)
                packed = b"".join([_pack(*events.popleft()) for _ in range(count)])
                failed = failed or self._apply(packed, count)
        if failed is not None:
            raise failed

    def _apply(self, packed, count):
        """Applies events, skipping rejected ones. Returns the first error or None."""
        array = (_ffi.TrackEvent * count).from_buffer_copy(packed)
        failed = None
        at = 0
        while at < count:
            applied = ctypes.c_size_t()
            error = _ffi.TarnError()
            left = ctypes.byref(array, at * _EVENT_BYTES)
            rest = ctypes.cast(left, ctypes.POINTER(_ffi.TrackEvent))
            status = lib.tarn_tracker_apply(
                self._handle, rest, count - at, ctypes.byref(applied), ctypes.byref(error)
            )
            at += applied.value
            if status:
                failed = failed or Error(
                    lib.tarn_status_name(status).decode(), _ffi.text_of(error)
                )
                at += 1
        return failed

    def _name_id(self, kind, text, ids, key):
        found = ctypes.c_uint32()
        call(lib.tarn_tracker_add_name, self._handle, kind, text.encode(), ctypes.byref(found))
        ids[key] = found.value
        return found.value

    def _device_id(self, device):
        try:
            return self._device_ids[device]
        except KeyError:
            return self._name_id(_DEVICE, str(device), self._device_ids, device)

    def _module_name_id(self, name):
        try:
            return self._name_ids[name]
        except KeyError:
            return self._name_id(_MODULE, name, self._name_ids, name)

    # ---- storages ----

    def _storage_died(self, storage):
        if self._storages.get(storage.key) is storage:
            del self._storages[storage.key]
        self._note((_DELETE, 0, 0, 0, 0, storage.number, 0))

    def _new_storage(self, storage, size):
        known = _Storage(storage, self._storage_died)
        known.key = id(storage)
        known.number = self._next_storage
        known.size = size
        self._next_storage += 1
        self._storages[known.key] = known
        return known.number

    def _see(self, tensor, flags):
        """Records a tensor that an operator returned."""
        kind = type(tensor)
        if kind is torch.Tensor or kind is nn.Parameter:
            storages = (tensor.untyped_storage(),)
        else:
            storages = _storages_of(tensor)
        for storage in storages:
            known = self._storages.get(id(storage))
            size = storage.nbytes()
            if known is None:
                number = self._new_storage(storage, size)
                device = self._device_id(tensor.device)
                self._note((_CREATE, flags, _AUTO, device, 0, number, size))
                continue
            if known.size != size:
                known.size = size
                self._note((_RESIZE, 0, 0, 0, 0, known.number, size))
            if not self._all_storages:
                return  # as PyTorch's tracker

    def _classify(self, tensor, category):
        for storage in _storages_of(tensor):
            known = self._storages.get(id(storage))
            size = storage.nbytes()
            number = self._new_storage(storage, size) if known is None else known.number
            self._note((_CLASSIFY, 0, category, self._device_id(tensor.device), 0, number, size))

    def _name_storages(self, kind, tree):
        """Records inputs or outputs of a module."""
        for tensor in _tensors_in(tree):
            for storage in _storages_of(tensor):
                known = self._storages.get(id(storage))
                if known is not None:
                    self._note((kind, 0, 0, 0, 0, known.number, 0))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **kwargs) if kwargs else func(*args)
        flags = _BACKWARD if _graph_task() != -1 else 0
        if isinstance(result, torch.Tensor):
            self._see(result, flags)
        elif result is not None:
            for tensor in _tensors_in(result):
                self._see(tensor, flags)
        self._note((_OP_DONE, flags, 0, 0, 0, 0, 0))
        if len(self._events) >= _EVENTS_AT_ONCE:
            self._flush()
        return result

    # ---- modules ----

    def _module_died(self, module):
        if self._modules.get(module.key) is module:
            del self._modules[module.key]
        self._names.pop(module.number, None)
        self._named_below.discard(module.number)
        if module.number in self._with_stats:
            self._with_stats.discard(module.number)
            self._note((_FORGET_MODULE, 0, 0, 0, 0, module.number, 0))

    def _number_of(self, module):
        known = self._modules.get(id(module))
        if known is None:
            known = _Module(module, self._module_died)
            known.key = id(module)
            known.number = self._next_module
            self._next_module += 1
            self._modules[known.key] = known
        return known.number

    def _name_of(self, module):
        """Names the first module after its class, submodules after their attributes."""
        number = self._number_of(module)
        name = self._names.setdefault(number, type(module).__name__)
        if number not in self._named_below:
            self._named_below.add(number)
            for attribute, child in module.named_children():
                self._names[self._number_of(child)] = f"{name}.{attribute}"
                self._name_of(child)
        return self._names[number]

    def _before_forward(self, module, inputs):
        name = self._name_of(module)
        number = self._number_of(module)
        backward = _graph_task() != -1
        flags = _BACKWARD if backward else 0
        self._note((_ENTER, flags, 0, self._module_name_id(name), 0, number, 0))
        if self._one_iteration and not backward:
            self._flush_entering()
        if number not in self._with_stats:
            self._with_stats.add(number)
            self._classify_module(module, with_hooks=True)
        self._name_storages(_INPUT, inputs)
        self._note((_READY, 0, 0, 0, 0, 0, 0))
        self._label_begin(name)
        if not backward:
            self._hook_end_of_backward(module, name, number, inputs)

    def _flush_entering(self):
        try:
            self._flush()
        except Error as error:
            text = str(error)
            if "multiple iterative calls" in text:
                raise NotImplementedError(text[text.index("MemTracker does") :]) from None
            raise

    def _hook_end_of_backward(self, module, name, number, inputs):
        tensors = [tensor for tensor in _tensors_in(inputs) if tensor.requires_grad]
        leave = functools.partial(self._leave_backward, weakref.ref(module), name, number)
        if tensors:
            register_multi_grad_hook(tensors, leave)
        else:
            self._at_end.append(leave)

    def _after_forward(self, module, inputs, outputs):
        name = self._name_of(module)
        number = self._number_of(module)
        backward = _graph_task() != -1
        if number in self._with_stats:
            if not backward:
                self._name_storages(_OUTPUT, outputs)
            self._note((_LEAVE, _BACKWARD if backward else 0, 0, 0, 0, number, 0))
        self._label_end(name)
        if not backward:
            tensors = [tensor for tensor in _tensors_in(outputs) if tensor.requires_grad]
            enter = functools.partial(self._enter_backward, weakref.ref(module), name, number)
            if tensors:
                register_multi_grad_hook(tensors, enter, mode="any")

    def _enter_backward(self, module, name, number, *_):
        self._await_end()
        if module() is None:
            warnings.warn("Module is None. Skipping PRE_BW hook.", stacklevel=2)
            return
        if number in self._with_stats:
            self._note((_ENTER_BACKWARD, _BACKWARD, 0, 0, 0, number, 0))
        self._label_begin(name)

    def _leave_backward(self, module, name, number, *_):
        if module() is None:
            warnings.warn("Module is None. Skipping POST_BW hook.", stacklevel=2)
            return
        if number in self._with_stats:
            self._note((_LEAVE_BACKWARD, _BACKWARD, 0, 0, 0, number, 0))
        self._label_end(name)

    def _await_end(self):
        """Queues a callback for the end of this backward; callbacks run in queueing order."""
        if self._awaits_end:
            return
        self._awaits_end = True
        engine = torch.autograd.Variable._execution_engine
        for leave in reversed(self._at_end):
            engine.queue_callback(leave)
        self._at_end.clear()
        engine.queue_callback(self._backward_ended)

    def _backward_ended(self):
        self._awaits_end = False
        self._note((_END_BACKWARD, 0, 0, 0, 0, 0, 0))
        del self._active[:]
        self._label()

    def _label_begin(self, name):
        if self._labels:
            self._active.append(name)
            self._label()

    def _label_end(self, name):
        if self._labels:
            if name in self._active:
                del self._active[len(self._active) - 1 - self._active[::-1].index(name)]
            self._label()

    def _label(self):
        if self._labels:
            text = self._active[-1] if self._active else ""
            torch._C._cuda_setMemoryMetadata(text[-255:])

    # ---- parameters, gradients, optimizers ----

    def _classify_module(self, module, with_hooks):
        for param in module.parameters():
            self._classify(param, _PARAM)
            if param.grad is not None:
                self._classify(param.grad, _GRAD)
            if with_hooks:
                self._hook_gradient(param)
        for buffer in module.buffers():
            self._classify(buffer, _BUFFER)

    def _hook_gradient(self, param):
        """Classifies gradients when they are first accumulated, once for each parameter."""
        known = self._grad_hooks.get(id(param))
        if not param.requires_grad or (known is not None and known[0]() is param):
            return
        handles = (
            param.register_hook(self._gradient_came),
            param.register_post_accumulate_grad_hook(self._gradient_is_kept),
        )
        self._grad_hooks[id(param)] = (weakref.ref(param), handles)

    def _gradient_came(self, gradient):
        self._classify(gradient, _GRAD)

    def _gradient_is_kept(self, param):
        if param.grad is not None:
            self._classify(param.grad, _GRAD)

    def _classify_optimizer(self, optimizer):
        for states in optimizer.state.values():
            for value in states.values():
                if isinstance(value, torch.Tensor):
                    self._classify(value, _OPT)

    def _before_step(self, optimizer, args, kwargs):
        self._note((_BEGIN_STEP, 0, 0, 0, 0, 0, 0))

    def _after_step(self, optimizer, args, kwargs):
        self._classify_optimizer(optimizer)
        self._note((_END_STEP, 0, 0, 0, 0, 0, 0))

    # ---- storages resized without an operator ----

    def _patch_resize(self):
        original = torch.UntypedStorage.resize_

        @functools.wraps(original)
        def resize_(storage, size):
            original(storage, size)
            known = self._storages.get(id(storage))
            if known is not None and known.size != storage.nbytes():
                known.size = storage.nbytes()
                self._note((_RESIZE, 0, 0, 0, 0, known.number, known.size))

        self._resize = original
        torch.UntypedStorage.resize_ = resize_

    # ---- the context ----

    def __enter__(self):
        self._depth += 1
        if self._depth == 1:
            super().__enter__()
            self._note((_START, 0, 0, 0, 0, 0, 0))
            self._hooks = [
                register_optimizer_step_pre_hook(self._before_step),
                register_optimizer_step_post_hook(self._after_step),
                register_module_forward_pre_hook(self._before_forward),
                # Also after an exception in forward: recomputation stops early by raising one.
                register_module_forward_hook(self._after_forward, always_call=True),
            ]
            self._patch_resize()
        return self

    def __exit__(self, *exception):
        self._depth -= 1
        if self._depth == 0:
            super().__exit__(*exception)
            for _, handles in self._grad_hooks.values():
                self._hooks.extend(handles)
            self._grad_hooks.clear()
            for hook in self._hooks:
                hook.remove()
            self._hooks = []
            torch.UntypedStorage.resize_ = self._resize
            self._at_end.clear()
            self._flush()

    # ---- the interface of PyTorch's tracker ----

    def track_external(self, *external):
        """Registers modules, optimizers and tensors that were created outside the context.

        Tensors count as Other. Raises TypeError for anything else but None.
        """
        for item in tree_flatten(external)[0]:
            if isinstance(item, torch.Tensor):
                self._classify(item, _OTHER)
            elif isinstance(item, nn.Module):
                self._classify_module(item, with_hooks=False)
            elif isinstance(item, optim.Optimizer):
                self._classify_optimizer(item)
            elif item is not None:
                raise TypeError(
                    f"Object of type {type(item)} is not supported for tracking. "
                    "Only stateful objects like modules, optimizers, and tensors are supported."
                )

    def get_tracker_snapshot(self, type="current"):
        """Bytes by torch.device and RefType, and "Total".

        "current" is the present state, "peak" each device at its own peak, "moment" all devices at
        the peak of their sum. Raises ValueError for others.
        """
        if type not in _MOMENTS:
            raise ValueError(f"Invalid type {type}")
        self._flush()
        rows = (_ffi.TrackRow * _ffi.TRACK_DEVICES_MAX)()
        count = ctypes.c_size_t()
        lib.tarn_tracker_get_rows(
            self._handle, _MOMENTS[type], rows, len(rows), ctypes.byref(count)
        )
        return self._snapshot(rows[: count.value])

    def _snapshot(self, rows):
        devices = {number: device for device, number in self._device_ids.items()}
        found = {}
        for row in rows:
            found[devices[row.device]] = _Row(zip(_REF_TYPES, row.bytes))
            found[devices[row.device]]["Total"] = row.total
        return found

    def _write(self, function, *arguments):
        """Returns text that the library writes."""
        self._flush()
        pieces = []

        def write(_context, data, size):
            pieces.append(ctypes.string_at(data, size))
            return _ffi.STATUS_OK

        writer = _ffi.Writer(_ffi.WRITE(write), None)
        call(function, self._handle, *arguments, ctypes.byref(writer))
        return b"".join(pieces).decode("utf-8", "replace")

    @staticmethod
    def _check_units(units):
        if units not in _UNITS:
            raise ValueError(
                f"Unsupported unit: {units}. Supported units are: B, KiB, MiB, GiB"
            )

    def display_snapshot(self, type="current", units="B", tabulate=False):
        """Prints get_tracker_snapshot(type), as a table with `tabulate`."""
        if type not in _MOMENTS:
            raise ValueError(f"Invalid type {type}")
        self._check_units(units)
        text = self._write(
            lib.tarn_tracker_write_rows, _MOMENTS[type], _UNITS[units], int(bool(tabulate))
        )
        print(text, end="")

    def display_modulewise_snapshots(self, depth=2, units="B", tabulate=False):
        """Prints the snapshots of every module down to `depth` in each of its states."""
        self._check_units(units)
        limit = min(max(math.ceil(depth), 0), 2**32 - 1)
        text = self._write(
            lib.tarn_tracker_write_modules, limit, _UNITS[units], int(bool(tabulate))
        )
        print(text, end="")

    def reset_mod_stats(self):
        """Discards the statistics of all modules; current bytes and peaks stay."""
        self._with_stats.clear()
        self._note((_RESET_MODULES, 0, 0, 0, 0, 0, 0))
        self._flush()

    # ---- extensions ----

    def display_tree(self, type="moment", depth=0, units="MiB", width=40):
        """Prints the tree of modules with the bytes of each, own and including submodules, and bars
        whose letters are categories. depth 0 shows all levels."""
        if type not in _MOMENTS:
            raise ValueError(f"Invalid type {type}")
        self._check_units(units)
        text = self._write(
            lib.tarn_tracker_write_tree, _MOMENTS[type], depth, _UNITS[units], width
        )
        print(text, end="")

    def display_iterations(self, units="MiB"):
        """Prints one line per iteration: start, peak, end, and the categories that grew."""
        self._check_units(units)
        print(self._write(lib.tarn_tracker_write_iterations, _UNITS[units]), end="")

    def as_dict(self):
        """All data as plain dictionaries and lists, keyed by device and module names."""
        data = json.loads(self._write(lib.tarn_tracker_write_json, True))
        for key in ("schema", "tool"):  # of the document, not of the run
            del data[key]
        return data

    @property
    def memory_tracking(self):
        """{module: its statistics}, in the order in which modules were first called."""
        self._flush()
        modules = {known.number: known() for known in list(self._modules.values())}
        names = {number: name for name, number in self._name_ids.items()}
        found = {}
        for index in range(lib.tarn_tracker_count_modules(self._handle)):
            stats = _ffi.TrackModule(struct_size=ctypes.sizeof(_ffi.TrackModule))
            _ffi.check(lib.tarn_tracker_get_module(self._handle, index, ctypes.byref(stats)))
            module = modules.get(stats.id)
            if module is not None:
                snapshots = self._module_snapshots(index, stats.state_count)
                found[module] = ModuleStats(stats, snapshots, names[stats.name])
        return found

    def _module_snapshots(self, index, state_count):
        found = {}
        for at in range(state_count):
            state = ctypes.c_uint32()
            calls = ctypes.c_size_t()
            _ffi.check(
                lib.tarn_tracker_get_state(
                    self._handle, index, at, ctypes.byref(state), ctypes.byref(calls)
                )
            )
            if calls.value:
                found[_STATES[state.value]] = [
                    self._module_call(index, at, number) for number in range(calls.value)
                ]
        return found

    def _module_call(self, index, state, number):
        rows = (_ffi.TrackRow * _ffi.TRACK_DEVICES_MAX)()
        count = ctypes.c_size_t()
        _ffi.check(
            lib.tarn_tracker_get_call(
                self._handle, index, state, number, rows, len(rows), ctypes.byref(count)
            )
        )
        return self._snapshot(rows[: count.value])
