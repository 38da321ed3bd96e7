# SPDX-License-Identifier: MIT
"""mixed.py SETTINGS SECONDS [PIECE [SHARE]]: steps of all workloads in turns, with tarn as
PyTorch's allocator, until the time is over. Between rounds the cache is emptied, a snapshot is
taken and every invariant of the allocator is checked. Says last how many steps and allocations
there were, and fails without a step. Pieces have other shapes and begin with another workload.
SHARE of the device's memory is the limit; after a step that it does not suffice for, all models are
made anew.

For compute-sanitizer (tests/gpu/sanitized.sh), under which a step takes a hundred times as long.
"""

import gc
import sys
import time

import tarn.torch

SETTINGS, SECONDS = sys.argv[1], float(sys.argv[2])
PIECE = int(sys.argv[3]) if len(sys.argv) > 3 else 0
SHARE = float(sys.argv[4]) if len(sys.argv) > 4 else 1.0
tarn.torch.install(SETTINGS)

import torch  # noqa: E402

import workloads  # noqa: E402


def main():
    end = time.monotonic() + SECONDS
    torch.manual_seed(1)
    torch.cuda.set_per_process_memory_fraction(SHARE)
    torch.cuda.memory._record_memory_history(max_entries=10000, stacks="python")
    running = {}
    counts = {}
    total = 0
    number = PIECE * 1000
    first = PIECE % len(workloads.ALL)
    order = workloads.ALL[first:] + workloads.ALL[:first]
    while time.monotonic() < end:
        for make in order:
            if time.monotonic() >= end:
                break
            gc.collect()  # what a step leaves in cycles may be gigabytes
            try:
                if make not in running:
                    running[make] = make()
                running[make](number)
            except torch.OutOfMemoryError:
                running.clear()  # what the others keep may be what is lacking
                counts["too large"] = counts.get("too large", 0) + 1
                continue
            counts[make.__name__] = counts.get(make.__name__, 0) + 1
            total += 1
            if total % 5 == 0:
                mib = torch.cuda.memory_allocated() >> 20
                print(f"{total} steps, {mib} MiB allocated", flush=True)
        number += 1
        torch.cuda.memory._snapshot()
        torch.cuda.empty_cache()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    print(
        f"{SETTINGS or 'default settings'}: {total} steps ({counts}),",
        f"{stats['allocation.all.allocated']} allocations,",
        f"{stats['num_alloc_retries']} retries",
    )
    return 0 if total else 1


if __name__ == "__main__":
    sys.exit(main())
