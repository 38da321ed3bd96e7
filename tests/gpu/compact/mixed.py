# SPDX-License-Identifier: MIT
"""mixed.py SETTINGS SECONDS: steps of all workloads in turns, with tarn as PyTorch's allocator,
until the time is over. Between rounds the cache is emptied, a snapshot is taken and every invariant
of the allocator is checked. Says last how many steps and allocations there were.

For compute-sanitizer (tests/gpu/sanitized.sh), under which a step takes a hundred times as long.
"""

import sys
import time

import tarn.torch

SETTINGS, SECONDS = sys.argv[1], float(sys.argv[2])
tarn.torch.install(SETTINGS)

import torch  # noqa: E402

import workloads  # noqa: E402


def main():
    end = time.monotonic() + SECONDS
    torch.manual_seed(1)
    torch.cuda.memory._record_memory_history(max_entries=10000, stacks="python")
    running = {}
    counts = {}
    number = 0
    while time.monotonic() < end:
        for make in workloads.ALL:
            if time.monotonic() >= end:
                break
            if make not in running:
                running[make] = make()
            running[make](number)
            counts[make.__name__] = counts.get(make.__name__, 0) + 1
        number += 1
        torch.cuda.memory._snapshot()
        torch.cuda.empty_cache()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    print(
        f"{SETTINGS or 'default settings'}: {sum(counts.values())} steps ({counts}),",
        f"{stats['allocation.all.allocated']} allocations,",
        f"{stats['num_alloc_retries']} retries",
    )


if __name__ == "__main__":
    main()
