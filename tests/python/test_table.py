# SPDX-License-Identifier: MIT
"""The table of tests/gpu/torch_plug.sh: what passes and what does not."""

import contextlib
import importlib.util
import io
import json
import os
import tempfile
import unittest

PATH = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "gpu", "torch_table.py"
)
spec = importlib.util.spec_from_file_location("torch_table", PATH)
torch_table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(torch_table)


def run(**more):
    return {
        "ok": True,
        "losses": [2.0, 1.0],
        "stats": {"num_ooms": 0, "num_device_alloc": 5},
        "reserved_peak": 100,
        "step_ms": 10.0,
        **more,
    }


class Judging(unittest.TestCase):
    def judge(self, again=None, **runs):
        repeats = {allocator: [one] for allocator, one in runs.items()}
        if again:
            repeats["native"].append(again)
        return torch_table.judge("gpt2", repeats)

    def test_equal_runs_pass(self):
        fine, text = self.judge(tarn=run(), native=run())
        self.assertTrue(fine)
        self.assertIn("same losses; same counters", text)
        self.assertIn("= 1.0000", text)

    def test_losses_that_differ(self):
        fine, text = self.judge(tarn=run(losses=[2.0, 1.1]), native=run())
        self.assertFalse(fine)
        self.assertIn("losses differ", text)
        again = run(losses=[2.0, 1.2])
        self.assertTrue(self.judge(tarn=run(losses=[2.0, 1.1]), native=run(), again=again)[0])
        fine = self.judge(tarn=run(losses=[2.0, 1.1]), native=run(), again=run())[0]
        self.assertFalse(fine)

    def test_counters_that_differ_are_named(self):
        fine, text = self.judge(tarn=run(stats={"num_ooms": 1}), native=run())
        self.assertFalse(fine)
        self.assertIn("2 counters differ: num_device_alloc, num_ooms", text)

    def test_events_that_differ(self):
        more = {"cost": "off 1 ms", "with_python": "5 of 9", "annotations": [["step", "START"]]}
        ours, theirs = run(events="7 events ab", **more), run(events="7 events ab", **more)
        fine, text = torch_table.judge("history", {"tarn": [ours], "native": [theirs]})
        self.assertTrue(fine)
        self.assertIn("7 events ab; a step recorded: off 1 ms / off 1 ms; 5 of 9", text)
        theirs["events"] = "7 events cd"
        fine, text = torch_table.judge("history", {"tarn": [ours], "native": [theirs]})
        self.assertFalse(fine)
        self.assertIn("events differ", text)
        theirs.update(events="7 events ab", annotations=[])
        fine, text = torch_table.judge("history", {"tarn": [ours], "native": [theirs]})
        self.assertFalse(fine)
        self.assertIn("annotations differ", text)

    def test_the_median_of_repeats_counts(self):
        ours = [run(step_ms=ms) for ms in (10.0, 10.5, 9.9)]
        theirs = [run(step_ms=ms) for ms in (10.0, 9.0, 10.1)]
        fine, text = torch_table.judge("gpt2", {"tarn": ours, "native": theirs})
        self.assertTrue(fine)
        self.assertIn("step 10.000 / 10.000 ms", text)
        ours[2]["ok"] = False
        self.assertFalse(torch_table.judge("gpt2", {"tarn": ours, "native": theirs})[0])

    def test_slow_steps(self):
        self.assertFalse(self.judge(tarn=run(step_ms=10.2), native=run())[0])
        self.assertTrue(self.judge(tarn=run(step_ms=10.05), native=run())[0])

    def test_a_failed_run_says_why(self):
        fine, text = self.judge(tarn={"ok": False, "why": "it broke"}, native=run())
        self.assertFalse(fine)
        self.assertEqual(text, "tarn: it broke")


class Lines(unittest.TestCase):
    def line(self, text, status):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write(text)
            log.flush()
            return torch_table.read_line(log.name, "gpt2", "tarn", status)

    def test_the_last_json_line_counts(self):
        self.assertTrue(self.line('noise\n{"ok": false}\n{"ok": true}\n{broken\n', 0)["ok"])

    def test_endings_without_a_result(self):
        self.assertIn("status 139 and printed no result", self.line("", 139)["why"])
        self.assertEqual(self.line('{"ok": true}\n', 124)["why"], "ran out of time")
        self.assertIn("after its result", self.line('{"ok": true}\n', 134)["why"])

    def test_the_table_counts(self):
        lines = [
            {"case": "gpt2", "allocator": "tarn", **run()},
            {"case": "gpt2", "allocator": "native", **run()},
            {"case": "gpt2_again", "allocator": "native", **run()},
            {"case": "gpt2_third", "allocator": "tarn", **run(step_ms=99.0)},
            {"case": "gpt2_third", "allocator": "tarn", **run()},
            {"case": "fork", "allocator": "tarn", "ok": False, "why": "it broke"},
        ]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as results:
            results.write("".join(json.dumps(line) + "\n" for line in lines))
            results.flush()
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                self.assertEqual(torch_table.table(results.name), 1)
        self.assertEqual(output.getvalue().splitlines()[-1], "1 passed, 1 failed, 0 skipped")
