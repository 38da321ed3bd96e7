# SPDX-License-Identifier: MIT
"""tarn.torch.debug against a stand-in for torch.distributed.debug. It needs nothing of torch's
allocator: torch.cuda is a stub as well."""

import json
import os
import pickle
import sys
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))

STATS = {
    "allocated_bytes.all.current": 3 << 20,
    "allocated_bytes.all.peak": 5 << 30,
    "reserved_bytes.all.current": 20 << 20,
    "reserved_bytes.all.peak": 6 << 30,
    "num_alloc_retries": 2,
    "num_ooms": 1,
}


class Response:
    def __init__(self, status_code, text):
        self.status_code = status_code
        self.text = text


class Worker:
    """What a handler of a worker fills in."""

    def set_content(self, content, kind):
        self.content, self.kind = content, kind

    def set_status(self, status):
        self.status = status


class Torch:
    """Modules in place of torch's, for as long as a test lasts."""

    def __init__(self, has_debug=True, takes_timeout=True, takes_handlers=True):
        self.registered = {}
        self.started = []
        self.timeouts = []
        self.answers = []
        self.is_initialized = True
        self.modules = {"torch": self.module("torch", __version__="2.13.0", cuda=self.cuda())}
        self.put("torch._C")
        self.put("torch._C._distributed_c10d", _register_handler=self.registered.__setitem__)
        self.put("torch.distributed")
        if has_debug:
            self.put_debug(takes_timeout, takes_handlers)

    @staticmethod
    def module(name, **members):
        made = types.ModuleType(name)
        made.__dict__.update(members)
        made.__path__ = []
        return made

    def put(self, name, **members):
        self.modules[name] = self.module(name, **members)
        parent, _, last = name.rpartition(".")
        setattr(self.modules[parent], last, self.modules[name])

    def cuda(self):
        return types.SimpleNamespace(
            is_initialized=lambda: self.is_initialized,
            device_count=lambda: 2,
            memory_stats=lambda device: STATS if device == 1 else {},
        )

    def put_debug(self, takes_timeout, takes_handlers):
        def fetch_new(endpoint, args="", *, timeout):
            self.timeouts.append(timeout)
            return fetch_old(endpoint, args)

        def fetch_old(endpoint, args=""):
            assert (endpoint, args) == ("tarn_memory", "")
            return [f"http://rank{i}" for i in range(len(self.answers))], iter(self.answers)

        def start_new(port=25999, handlers=None, **_more):
            self.started.append((port, handlers))

        def start_old(port=25999):
            self.started.append((port, None))

        self.put(
            "torch.distributed.debug",
            start_debug_server=start_new if takes_handlers else start_old,
        )
        self.put(
            "torch.distributed.debug._frontend",
            DebugHandler=type("DebugHandler", (), {"fetch_timeout": 60.0}),
            NavLink=lambda path, label: (path, label),
            Route=lambda path, handler: (path, handler),
            fetch_all=fetch_new if takes_timeout else fetch_old,
        )
        self.put("torch.distributed.debug._debug_handlers", default_handlers=lambda: ["torch's"])


class Debug(unittest.TestCase):
    def use(self, **options):
        """tarn.torch.debug, loaded without the package around it, which needs libtarn."""
        fake = Torch(**options)
        kept = {name: sys.modules.get(name) for name in [*fake.modules, "tarn.torch", "tarn_debug"]}
        sys.modules.update(fake.modules)
        self.addCleanup(self.restore, kept)
        path = os.path.join(HERE, "..", "..", "python", "tarn", "torch", "debug.py")
        made = types.ModuleType("tarn_debug")
        sys.modules["tarn_debug"] = made
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), made.__dict__)  # noqa: S102
        return fake, made

    @staticmethod
    def restore(kept):
        for name, module in kept.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module

    def answer(self, fake):
        worker = Worker()
        fake.registered["tarn_memory"](None, worker)
        self.assertEqual((worker.status, worker.kind), (200, "application/json"))
        return worker.content

    def test_a_rank_answers_with_its_devices_in_use(self):
        fake, debug = self.use()
        debug.register()
        self.assertEqual(json.loads(self.answer(fake))["devices"], [{"device": 1, **STATS}])
        fake.is_initialized = False  # and CUDA is not started
        self.assertEqual(json.loads(self.answer(fake)), {"devices": []})

    def test_the_page_shows_all_ranks(self):
        fake, debug = self.use()
        debug.register()
        good = self.answer(fake)
        fake.answers = [
            Response(200, good), Response(503, "ConnectionError: <gone>"), Response(200, "{}"),
            Response(200, '{"devices": []}'), Response(200, good),
        ]  # fmt: skip
        page = debug.handler()
        page.fetch_timeout = 5.0
        (path, handle), = page.routes()
        self.assertEqual(page.nav_links(), [(path, "Memory")])
        shown = []

        class Frontend:
            def render_template(self, name, **values):
                assert name in page.templates()
                shown.append(values["table"])
                return b"page"

        self.assertEqual(handle(types.SimpleNamespace(frontend=Frontend())), b"page")
        lines = shown[0].splitlines()
        row = ["3.00", "MiB", "20.00", "MiB", "5.00", "GiB", "6.00", "GiB", "2", "1"]
        self.assertEqual(lines[1].split(), ["0", "1", *row])
        self.assertEqual(lines[2].split(), ["4", "1", *row])
        self.assertIn("rank 1: no answer, status 503: ConnectionError: <gone>", lines)
        self.assertTrue(any(line.startswith("rank 2: its answer cannot be read") for line in lines))
        self.assertIn("rank 3: no memory of a GPU in use", lines)
        self.assertIn("| e }}", page.templates()["tarn_memory.html"])
        self.assertEqual((page.dump(), page.dump_filename()), (shown[0], "tarn_memory"))
        self.assertEqual(fake.timeouts, [5.0, 5.0])

    def test_a_server_without_a_timeout(self):
        fake, debug = self.use(takes_timeout=False)
        fake.answers = [Response(200, '{"devices": []}')]
        self.assertIn("rank 0: no memory", debug.handler().dump())

    def test_start_adds_the_page_to_torchs_own(self):
        fake, debug = self.use()
        debug.start(port=7)
        (port, (first, page)), = fake.started
        self.assertEqual((port, first), (7, "torch's"))
        self.assertIn("tarn_memory", fake.registered)
        self.assertIsInstance(pickle.loads(pickle.dumps(page)), type(page))  # for `spawn`
        debug.start(handlers=[])
        self.assertEqual(len(fake.started[1][1]), 1)

    def test_older_torch_is_refused_with_a_sentence(self):
        from tarn.errors import Error

        for options in ({"has_debug": False}, {"takes_handlers": False}):
            fake, debug = self.use(**options)
            with self.assertRaisesRegex(Error, "torch 2.13.0"):
                debug.start()
            self.assertEqual((fake.started, fake.registered), ([], {}))
            for call in (debug.handler, debug.register) if "has_debug" in options else ():
                with self.assertRaises(Error):
                    call()
            self.doCleanups()


if __name__ == "__main__":
    unittest.main()
