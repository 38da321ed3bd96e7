# SPDX-License-Identifier: MIT
from torch import _C

_state = {"started": False, "queued": []}


def init():
    if not _state["started"]:
        _state["started"] = True
        _C.init(device_count())
        for call in _state["queued"]:
            call()


def _lazy_call(call):
    if _state["started"]:
        call()
    else:
        _state["queued"].append(call)


def is_initialized():
    return _state["started"]


def device_count():
    return 2


def current_device():
    return 0


from torch.cuda import memory  # noqa: E402
from torch.cuda.memory import *  # noqa: E402,F403
