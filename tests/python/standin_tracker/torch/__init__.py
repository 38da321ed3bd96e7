# SPDX-License-Identifier: MIT
"""A stand-in for torch: as much of tensors, modules, hooks and dispatch as tests of tarn.tracker
need. An operator is `call(name, device, bytes)`; backward is what a test says it is."""

import sys
import types


class UntypedStorage:
    def __init__(self, size):
        self._size = size

    def nbytes(self):
        return self._size

    def resize_(self, size):
        self._size = size


class device:  # noqa: N801
    def __init__(self, name):
        self._name = name

    def __str__(self):
        return self._name

    def __eq__(self, other):
        return str(self) == str(other)

    def __hash__(self):
        return hash(self._name)


class Tensor:
    def __init__(self, storage, where, requires_grad=False):
        self._storage = storage
        self.device = device(where)
        self.requires_grad = requires_grad
        self.grad = None
        self.hooks = []
        self.post_hooks = []

    def untyped_storage(self):
        return self._storage

    def register_hook(self, hook):
        return Handle(self.hooks, hook)

    def register_post_accumulate_grad_hook(self, hook):
        return Handle(self.post_hooks, hook)


class Parameter(Tensor):
    pass


class Wrapper(Tensor):
    """A wrapper subclass: tensors inside of a tensor."""

    def __init__(self, *inner):
        super().__init__(None, str(inner[0].device))
        self.inner = {f"t{i}": tensor for i, tensor in enumerate(inner)}

    def __getattr__(self, name):
        return self.__dict__["inner"][name]

    def __tensor_flatten__(self):
        return list(self.inner), None


class Handle:
    def __init__(self, hooks, hook):
        self._hooks = hooks
        self._hook = hook
        hooks.append(hook)

    def remove(self):
        self._hooks.remove(self._hook)


PRE_FORWARD, FORWARD, PRE_STEP, POST_STEP, MODES, MULTI, AT_END = [], [], [], [], [], [], []
ALWAYS = []  # of FORWARD: also when the forward pass raises
state = types.SimpleNamespace(graph_task=-1, metadata="")


def call(where, *sizes, into=None):
    """An operator with those results, or with the tensor `into`."""

    def operator():
        made = [Tensor(UntypedStorage(size), where) for size in sizes]
        return into if into is not None else made[0] if len(made) == 1 else made

    if MODES:
        return MODES[-1].__torch_dispatch__(operator, ())
    return operator()


class Module:
    def named_children(self):
        return [(name, item) for name, item in vars(self).items() if isinstance(item, Module)]

    def parameters(self):
        yield from (item for item in vars(self).values() if isinstance(item, Parameter))
        for _, child in self.named_children():
            yield from child.parameters()

    def buffers(self):
        return list(getattr(self, "kept", ()))

    def __call__(self, *inputs):
        for hook in list(PRE_FORWARD):
            hook(self, inputs)
        try:
            outputs = self.forward(*inputs)
        except Exception:
            for hook in list(FORWARD):
                if hook in ALWAYS:
                    hook(self, inputs, None)
            raise
        for hook in list(FORWARD):
            hook(self, inputs, outputs)
        return outputs


class Optimizer:
    def __init__(self):
        self.state = {}

    def step(self):
        for hook in list(PRE_STEP):
            hook(self, (), {})
        self.work()
        for hook in list(POST_STEP):
            hook(self, (), {})


class TorchDispatchMode:
    def __enter__(self):
        MODES.append(self)
        return self

    def __exit__(self, *exception):
        MODES.pop()


def register_multi_grad_hook(tensors, hook, *, mode="all"):
    MULTI.append((mode, hook))


def tree_flatten(tree):
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in tree_flatten(item)[0]], None
    return [tree], None


def _register(hooks):
    return lambda hook: Handle(hooks, hook)


def _register_forward(hook, always_call=False):
    if always_call:
        ALWAYS.append(hook)
    return Handle(FORWARD, hook)


def _module(name, **contents):
    module = types.ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[parent], last, module)


_engine = types.SimpleNamespace(queue_callback=AT_END.append)
_module(
    "torch._C",
    _current_graph_task_id=lambda: state.graph_task,
    _cuda_setMemoryMetadata=lambda text: setattr(state, "metadata", text),
)
_module("torch.nn", Module=Module, Parameter=Parameter)
_module("torch.nn.modules")
_module(
    "torch.nn.modules.module",
    register_module_forward_hook=_register_forward,
    register_module_forward_pre_hook=_register(PRE_FORWARD),
)
_module("torch.optim", Optimizer=Optimizer)
_module(
    "torch.optim.optimizer",
    register_optimizer_step_pre_hook=_register(PRE_STEP),
    register_optimizer_step_post_hook=_register(POST_STEP),
)
_module("torch.autograd", Variable=types.SimpleNamespace(_execution_engine=_engine))
_module("torch.autograd.graph", register_multi_grad_hook=register_multi_grad_hook)
_module("torch.utils")
_module(
    "torch.utils._python_dispatch",
    TorchDispatchMode=TorchDispatchMode,
    is_traceable_wrapper_subclass=lambda tensor: isinstance(tensor, Wrapper),
)
_module("torch.utils._pytree", tree_flatten=tree_flatten)
