# SPDX-License-Identifier: MIT
"""tarn.tracker behind a stand-in for torch. Each case is a process: torch is imported once."""

import os
import subprocess
import sys
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PREAMBLE = """
import torch
from tarn.tracker import MemTracker, RefType, State

def fails(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call} did not fail")

class Linear(torch.Module):
    def __init__(self, size):
        self.weight = torch.Parameter(torch.UntypedStorage(size), "cuda:0", True)
    def forward(self, x):
        out = torch.call("cuda:0", 2000)
        out.requires_grad = True
        return out

class Model(torch.Module):
    def __init__(self):
        self.first = Linear(1000)
        self.second = Linear(3000)
        self.kept = [torch.Tensor(torch.UntypedStorage(100), "cpu")]
    def forward(self, x):
        return self.second(self.first(x))

class Adam(torch.Optimizer):
    def __init__(self, model):
        super().__init__()
        self.model = model
    def work(self):
        for p in self.model.parameters():
            moment = torch.call("cuda:0", p.untyped_storage().nbytes())
            self.state[p] = {"exp_avg": moment, "step": 1}

def backward(model):
    torch.state.graph_task = 7
    multi, torch.MULTI[:] = list(torch.MULTI), []
    # Outputs' hooks of the outer modules come first, inputs' hooks when their work is done.
    for mode, hook in reversed(multi):
        if mode == "any":
            hook(None)
    for p in reversed(list(model.parameters())):
        grad = torch.call("cuda:0", p.untyped_storage().nbytes())
        for hook in p.hooks:
            hook(grad)
        p.grad = grad
        for hook in p.post_hooks:
            hook(p)
    for mode, hook in multi:
        if mode == "all":
            hook(None)
    while torch.AT_END:
        torch.AT_END.pop(0)()
    torch.state.graph_task = -1
"""


class Tracker(unittest.TestCase):
    def passes(self, script):
        paths = [os.path.join(HERE, "..", "..", "python"), os.path.join(HERE, "standin_tracker")]
        done = subprocess.run(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(script)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_a_step_is_attributed(self):
        self.passes("""
        model = Model()
        optimizer = Adam(model)
        x = torch.Tensor(torch.UntypedStorage(512), "cuda:0")
        tracker = MemTracker()
        tracker.track_external(model, optimizer, x, None)
        gpu, cpu = torch.device("cuda:0"), torch.device("cpu")
        row = tracker.get_tracker_snapshot()[gpu]
        assert row["Parameter"] == row[RefType.PARAM] == 1024 + 3072, row
        assert row["Other"] == 512 and row["Total"] == 4608
        with tracker as same:
            assert same is tracker
            y = model(x)
            row = tracker.get_tracker_snapshot()[gpu]
            assert row["Activation"] == 2 * 2048 - 2048, row   # the first one died
            backward(model)
            row = tracker.get_tracker_snapshot()[gpu]
            assert row["Gradient"] == 4096 and row["Temp"] == 0, row
            optimizer.step()
            row = tracker.get_tracker_snapshot()[gpu]
            assert row["Optstate"] == 4096, row
            x.untyped_storage().resize_(0)
            assert tracker.get_tracker_snapshot()[gpu]["Other"] == 0
        assert tracker.get_tracker_snapshot()[cpu]["Buffer"] == 100
        assert torch.UntypedStorage.resize_.__qualname__ == "UntypedStorage.resize_"
        for hooks in (torch.PRE_FORWARD, torch.FORWARD, torch.PRE_STEP, torch.POST_STEP):
            assert not hooks
        for p in model.parameters():
            assert not p.hooks and not p.post_hooks
        del y
        assert tracker.get_tracker_snapshot()[gpu]["Activation"] == 0
        peak = tracker.get_tracker_snapshot("peak")[gpu]
        assert peak["Optstate"] == 4096 and peak["Gradient"] == 4096, peak

        stats = list(tracker.memory_tracking.values())
        assert [s.mod_fqn for s in stats] == ["Model", "Model.first", "Model.second"]
        assert stats[0].parameter_mem == 4096 and stats[0].buffer_mem == 100
        assert stats[1].input_mem == 512 and stats[1].output_mem == 2048
        assert list(stats[0].snapshots) == [
            State.PEAK_FW, State.PRE_FW, State.POST_FW, State.PEAK_BW, State.PRE_BW, State.POST_BW
        ], list(stats[0].snapshots)
        assert stats[0].snapshots["Peak-Forward"][0][gpu]["Activation"] == 4096
        assert tracker.as_dict()["modules"]["Model.second"]["parameter_mem"] == 3072
        """)

    def test_iterations(self):
        out = self.passes("""
        model = Model()
        x = torch.Tensor(torch.UntypedStorage(512), "cuda:0")
        with MemTracker() as tracker:
            for _ in range(3):
                model(x)
                backward(model)
        assert len(tracker.as_dict()["iterations"]) == 3
        tracker.display_iterations("KiB")
        with MemTracker(one_iteration=True) as tracker:
            model(x)
            backward(model)
            text = fails(NotImplementedError, model, x)
            assert text.startswith("MemTracker does not support memory tracking for multiple "
                                   "iterative calls. Either use ``reset_mod_stats`` to"), text
            tracker.reset_mod_stats()
            model(x)
        """)
        self.assertEqual(len(out.splitlines()), 4)

    def test_recomputation_makes_activations(self):
        self.passes("""
        model = Model()
        x = torch.Tensor(torch.UntypedStorage(512), "cuda:0")
        with MemTracker() as tracker:
            model(x)
            torch.state.graph_task = 3
            temp = torch.call("cuda:0", 512)
            y = model.first(x)
            again = torch.call("cuda:0", 512)
            torch.state.graph_task = -1
            row = tracker.get_tracker_snapshot()[torch.device("cuda:0")]
        assert row["Temp"] == 1024 and row["Activation"] == 2048, row
        stats = tracker.memory_tracking[model.first]
        assert len(stats.snapshots[State.PRE_FW_AC]) == len(stats.snapshots[State.POST_FW_AC]) == 1
        """)

    def test_recomputation_that_stops_early_has_ended(self):
        self.passes("""
        class Enough(Exception):
            pass

        class Stops(Linear):
            enough = False
            def forward(self, x):
                out = super().forward(x)
                if self.enough:
                    raise Enough
                return out

        model = Stops(1000)
        x = torch.Tensor(torch.UntypedStorage(512), "cuda:0")
        with MemTracker() as tracker:
            model(x)
            torch.state.graph_task = 3
            model.enough = True
            fails(Enough, model, x)
            temp = torch.call("cuda:0", 512)
            torch.state.graph_task = -1
            row = tracker.get_tracker_snapshot()[torch.device("cuda:0")]
        assert row["Temp"] == 512, row
        assert len(tracker.memory_tracking[model].snapshots[State.POST_FW_AC]) == 1
        """)

    def test_wrappers(self):
        self.passes("""
        def tensor(size):
            return torch.Tensor(torch.UntypedStorage(size), "cpu")
        for every, expected in ((False, 1), (True, 11)):
            with MemTracker(all_storages=every) as tracker:
                a = torch.call("cpu", 1)
                b = tensor(10)
                torch.call("", into=torch.Wrapper(b, a))   # looked at from the last one on
            total = tracker.get_tracker_snapshot()[torch.device("cpu")]["Total"]
            assert total == expected, (every, total)
        """)

    def test_errors_are_pytorchs(self):
        self.passes("""
        tracker = MemTracker()
        text = fails(TypeError, tracker.track_external, 5)
        assert text == ("Object of type <class 'int'> is not supported for tracking. Only stateful "
                        "objects like modules, optimizers, and tensors are supported."), text
        assert fails(ValueError, tracker.get_tracker_snapshot, "now") == "Invalid type now"
        assert fails(ValueError, tracker.display_snapshot, "now") == "Invalid type now"
        for display in (tracker.display_snapshot, tracker.display_modulewise_snapshots):
            text = fails(ValueError, display, units="TiB")
            assert text == "Unsupported unit: TiB. Supported units are: B, KiB, MiB, GiB", text
        """)

    def test_displays_and_labels(self):
        out = self.passes("""
        model = Model()
        seen = []
        class Spy(Linear):
            def forward(self, x):
                seen.append(torch.state.metadata)
                return super().forward(x)
        model.first = Spy(1000)
        x = torch.Tensor(torch.UntypedStorage(512), "cuda:0")
        with MemTracker(label_allocations=True) as tracker:
            with tracker:   # again is no harm
                model(x)
                del model
        assert seen == ["Model.first"] and torch.state.metadata == "", (seen, torch.state)
        tracker.display_snapshot("peak", units="KiB")
        tracker.display_snapshot("current", tabulate=True)
        tracker.display_modulewise_snapshots(depth=1, units="KiB")
        tracker.display_tree()
        assert not tracker.memory_tracking   # its modules are gone
        """)
        self.assertTrue(out.startswith("Device: cuda:0\n\tParameter: 4.0 KiB\n"), out)


if __name__ == "__main__":
    unittest.main()
