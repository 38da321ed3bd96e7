# SPDX-License-Identifier: MIT
"""python -m tarn.torch PROGRAM ARGUMENTS... runs a Python program with tarn as torch's allocator;
-m MODULE runs a module. With TARN_TORCH=0 tarn is not installed, for comparison. --build compiles
the library with the allocator class for this torch and prints its path.

Processes that PROGRAM starts with multiprocessing's "spawn" method get tarn as well.
"""

import importlib.util
import os
import runpy
import sys

_USAGE = "usage: python -m tarn.torch [--build | -m MODULE | PROGRAM] ARGUMENTS..."


def _main(arguments):
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(_USAGE)
        return 0 if arguments and arguments != ["-m"] else 2
    from tarn.torch import _program

    if arguments[0] == "--build":
        import tarn.torch

        print(tarn.torch.build())
        return 0
    _program.install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        os.environ["TARN_TORCH_PROGRAM"] = os.path.abspath(arguments[0])
        space = globals()
        space["__spec__"] = importlib.util.find_spec("tarn.torch._program")
        _program.execute(space, "__main__")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
