# SPDX-License-Identifier: MIT
"""Runs scripts behind the stand-in for torch. The allocator of a process cannot be changed back, so
each script is a process."""

import os
import subprocess
import sys
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "python")
PREAMBLE = """
import torch
import tarn.torch
MIB = 1 << 20

def fails(kind, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call} did not fail")
"""
SETTINGS = ("TARN_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "TARN_DUMP_ON_OOM")


def environment(standin, **more):
    merged = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([PACKAGE, standin]),
        "TARN_TORCH_DEVICE": "sim:1GiB",
        **more,
    }
    for name in SETTINGS:
        if name not in more:
            merged.pop(name, None)
    return merged


def run(command, merged, cwd=None):
    return subprocess.run(
        [sys.executable, *command],
        env=merged,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


class Case(unittest.TestCase):
    standin = os.path.join(HERE, "standin")
    settings = {}  # further variables of the environment

    def done(self, script, **more):
        merged = environment(self.standin, **{**self.settings, **more})
        return run(["-c", PREAMBLE + textwrap.dedent(script)], merged)

    def passes(self, script, **more):
        """What the script prints; it must succeed and complain of nothing."""
        done = self.done(script, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout
