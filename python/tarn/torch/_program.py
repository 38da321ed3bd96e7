# SPDX-License-Identifier: MIT
"""The program of `python -m tarn.torch PROGRAM`: runs it in the namespace of the main module, where
pickles look for what it defines. A process that it spawns imports this module as its main module,
and finds the program's path in TARN_TORCH_PROGRAM."""

import os
import sys


def install():
    import tarn.torch

    if os.environ.get("TARN_TORCH", "1") not in ("", "0"):
        tarn.torch.install()


def execute(space, name):
    """Runs the program in that namespace."""
    program = os.environ["TARN_TORCH_PROGRAM"]
    sys.argv[0] = program
    with open(program, "rb") as file:
        code = compile(file.read(), program, "exec")
    space.update(__file__=program, __name__=name, __package__=None, __doc__=None)
    exec(code, space)


if __name__ == "__mp_main__":
    install()
    execute(globals(), "__mp_main__")
