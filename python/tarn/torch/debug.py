# SPDX-License-Identifier: MIT
"""The memory of all ranks in torch.distributed.debug.

    import tarn.torch.debug
    tarn.torch.debug.start()      # on every rank, in place of start_debug_server()

adds the page "Memory" to the server of rank 0: one row per rank and device. It works with tarn as
torch's allocator and without. Not thread-safe: call it once, from the main thread.

Versions of torch after 2.11 have the server; where it is missing or takes no handlers, the
functions here raise tarn.Error.
"""

import inspect
import json

import torch

from tarn.errors import Error

__all__ = ["handler", "register", "start"]

ENDPOINT = "tarn_memory"
COLUMNS = (
    ("allocated", "allocated_bytes.all.current"),
    ("reserved", "reserved_bytes.all.current"),
    ("peak allocated", "allocated_bytes.all.peak"),
    ("peak reserved", "reserved_bytes.all.peak"),
    ("retries", "num_alloc_retries"),
    ("OOMs", "num_ooms"),
)
TEMPLATE = """
{% extends "base.html" %}
{% block header %}<h1>{% block title %}Memory{% endblock %}</h1>{% endblock %}
{% block content %}<pre>{{ table | e }}</pre>{% endblock %}
"""

try:
    from torch.distributed.debug import _frontend
    from torch.distributed.debug._frontend import DebugHandler, NavLink, Route

    _missing = None
except Exception as error:  # noqa: BLE001: also its dependencies may be missing, or fail
    DebugHandler = object
    _missing = error


def _check():
    if _missing is not None:
        raise Error(
            "TARN_ERR_NOT_SUPPORTED",
            f"torch {torch.__version__} has no torch.distributed.debug with handlers, as "
            "versions after 2.11 have, or lacks what it needs (jinja2, aiohttp or requests): "
            f"{_missing}",
        )


# On every rank.


def _devices():
    """Counters of this process's devices. Starts no CUDA and waits for no GPU, since the page is
    for jobs that hang."""
    if not torch.cuda.is_initialized():
        return []
    found = []
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        if stats.get("reserved_bytes.all.peak", 0) > 0:
            found.append({"device": device, **{key: stats.get(key, 0) for _, key in COLUMNS}})
    return found


def _answer(_request, response):
    response.set_content(json.dumps({"devices": _devices()}), "application/json")
    response.set_status(200)


def register():
    """Makes this rank answer the page. start() does it; call it where something else starts the
    server."""
    _check()
    from torch._C._distributed_c10d import _register_handler

    _register_handler(ENDPOINT, _answer)


# On rank 0, in the process of the server.


def _size(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024
    return None


def _cells(rank, device):
    cells = [str(rank), str(device["device"])]
    for _, key in COLUMNS:
        cells.append(_size(device[key]) if "bytes" in key else str(device[key]))
    return cells


def _rows(responses):
    """Rows of the table, and one line for each rank that has none."""
    rows = []
    notes = []
    for rank, response in enumerate(responses):
        if response.status_code != 200:
            notes.append(f"rank {rank}: no answer, status {response.status_code}: {response.text}")
            continue
        try:
            found = [_cells(rank, device) for device in json.loads(response.text)["devices"]]
        except (KeyError, TypeError, ValueError) as error:
            notes.append(f"rank {rank}: its answer cannot be read: {error!r}")
            continue
        rows += found
        if not found:
            notes.append(f"rank {rank}: no memory of a GPU in use")
    return rows, notes


def _table(responses):
    rows, notes = _rows(responses)
    lines = [["rank", "device", *(name for name, _ in COLUMNS)], *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines]
    return "\n".join(text + notes) + "\n"


class _Memory(DebugHandler):
    """A page of the server; pickled when the server is a spawned process."""

    fetch_timeout = 60.0  # seconds; the server may set another

    def routes(self):
        return [Route("/tarn_memory", self._handle)]

    def nav_links(self):
        return [NavLink("/tarn_memory", "Memory")]

    def templates(self):
        return {"tarn_memory.html": TEMPLATE}

    def dump(self):
        return self._fetch()

    def dump_filename(self):
        return ENDPOINT

    def _fetch(self):
        fetch = _frontend.fetch_all
        options = {}
        if "timeout" in inspect.signature(fetch).parameters:  # not in the first versions
            options["timeout"] = self.fetch_timeout
        _, responses = fetch(ENDPOINT, **options)
        return _table(responses)

    def _handle(self, request):
        return request.frontend.render_template("tarn_memory.html", table=self._fetch())


def handler():
    """The page, for the `handlers` of torch.distributed.debug.start_debug_server; that replaces
    torch's own unless they are in the list."""
    _check()
    return _Memory()


def start(handlers=None, **options):
    """torch.distributed.debug.start_debug_server with the page "Memory" behind torch's own pages,
    or behind `handlers`. On every rank; options are passed on. With `dump_dir`, add "tarn_memory"
    to `enabled_dumps` to write the table there."""
    _check()
    from torch.distributed import debug

    if "handlers" not in inspect.signature(debug.start_debug_server).parameters:
        raise Error(
            "TARN_ERR_NOT_SUPPORTED",
            f"the debug server of torch {torch.__version__} takes no handlers; newer ones do",
        )
    if handlers is None:
        from torch.distributed.debug._debug_handlers import default_handlers

        handlers = default_handlers()
    register()
    debug.start_debug_server(handlers=[*handlers, handler()], **options)
