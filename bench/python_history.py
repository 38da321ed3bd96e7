# SPDX-License-Identifier: MIT
"""What recording a call costs with stacks of Python: nanoseconds an allocation or a free.

    PYTHONPATH=python:tests/python/standin TARN_LIBRARY_DIR=build/release \\
        TARN_TORCH_STANDIN=build/check/tests/plug/libc10_cuda.so TARN_TORCH_DEVICE=sim:1GiB \\
        python3 bench/python_history.py

Calls the plug as torch does, without the interpreter's lock, on a simulated device and behind the
stand-in for torch. Processor time of the thread, the best of a few; the loop itself, and what the
calls cost without recording, are taken off. A row: frames of Python, then nanoseconds without
stacks, with those of Python, and with those of C as well.
"""

import ctypes
import time

import torch

import tarn

CALLS = 10_000
TIMES = 5


def functions():
    library = ctypes.CDLL(tarn._ffi.find_library("libtarn_torch.so"))
    pointer, size, device = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.tarn_torch_alloc.restype = pointer
    library.tarn_torch_alloc.argtypes = [size, device, pointer]
    library.tarn_torch_free.argtypes = [pointer, size, device, pointer]
    return library.tarn_torch_alloc, library.tarn_torch_free


def measure(alloc, free):
    begun = time.thread_time_ns()
    for _ in range(CALLS):
        free(alloc(4096, 0, None), 4096, 0, None)
    return (time.thread_time_ns() - begun) / (2 * CALLS)


def at_depth(frames, function):
    return function() if frames == 0 else at_depth(frames - 1, function)


def main():
    tarn.torch.install()
    alloc, free = functions()
    record = torch.cuda.memory._record_memory_history
    modes = {
        "off": {"enabled": None},
        "none": {"context": None, "max_entries": 100_000},
        "python": {"stacks": "python", "max_entries": 100_000},
        "all": {"stacks": "all", "max_entries": 100_000},
    }
    for frames in (8, 16, 32, 64):
        best = {}
        for _ in range(TIMES):
            for name, options in modes.items():
                record(**options)
                taken = at_depth(frames - 5, lambda: measure(alloc, free))
                best[name] = min(best.get(name, taken), taken)
        costs = [best[name] - best["off"] for name in ("none", "python", "all")]
        print(f"| {frames} | " + " | ".join(f"{cost:,.0f}" for cost in costs) + " |", flush=True)


if __name__ == "__main__":
    main()
