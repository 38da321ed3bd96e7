# SPDX-License-Identifier: MIT
"""measure.py ALLOCATOR WORKLOAD RESULTS [STEPS]: one workload with one allocator; a JSON line for
each run of it is added to RESULTS.

ALLOCATOR is native, expandable (PyTorch's own, with expandable segments), exact or compact
(tarn's). The runs: one to load everything; one without a limit, watched by NVML; one without a
limit and unwatched, for the time of its steps; with limits between 1.003 and 1.4 times the memory
that lives at most, to find the smallest that suffices; and one with a limit of 1.02 times, or what
suffices PyTorch. Under compact one more, whose steps are all alike, for the pages that move in its
second half.
"""

import gc
import json
import os
import statistics
import sys
import threading
import time

ALLOCATOR, WORKLOAD, RESULTS = sys.argv[1:4]
STEPS = int(sys.argv[4]) if len(sys.argv) > 4 else 50
LIMITS = (
    1.003, 1.005, 1.0075, 1.01, 1.015, 1.02, 1.03, 1.04, 1.06, 1.08, 1.11, 1.15, 1.2, 1.3, 1.4,
)  # fmt: skip
SETTINGS = {"native": "", "expandable": "expandable_segments:True"}
if ALLOCATOR in SETTINGS:
    os.environ["PYTORCH_ALLOC_CONF"] = SETTINGS[ALLOCATOR]

import pynvml  # noqa: E402  after the settings
import torch  # noqa: E402

import workloads  # noqa: E402

if ALLOCATOR not in SETTINGS:
    import tarn.torch

    tarn.torch.install("policy:compact" if ALLOCATOR == "compact" else "")

TOTAL = torch.cuda.get_device_properties(0).total_memory


class Watch(threading.Thread):
    """The most memory of this GPU that the driver has given away, as NVML sees it."""

    def __init__(self):
        super().__init__(daemon=True)
        pynvml.nvmlInit()
        self.gpu = pynvml.nvmlDeviceGetHandleByIndex(int(os.environ.get("NVML_INDEX", 0)))
        self.peak = 0
        self.done = threading.Event()

    def used(self):
        return pynvml.nvmlDeviceGetMemoryInfo(self.gpu).used

    def run(self):
        while not self.done.wait(0.002):
            self.peak = max(self.peak, self.used())

    def end(self):
        self.done.set()
        self.join()
        return max(self.peak, self.used())


def clear():
    gc.collect()
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()


def pages():
    found = tarn.torch.page_stats().get(0) if ALLOCATOR not in SETTINGS else None
    return found if found and found["requests"] else None


def pages_moved():
    return (pages() or {"moved": 0})["moved"]


def seconds_of(steps, is_fixed=False):
    """Runs the workload; seconds of each step, or None when memory ran out. And the pages that
    moved in the second half."""
    torch.manual_seed(1)
    seconds = []
    moved = 0
    try:
        step = getattr(workloads, WORKLOAD)()
        for number in range(steps):
            if number == steps // 2:
                moved = pages_moved()
            begun = time.perf_counter()
            step(0 if is_fixed else number)
            seconds.append(time.perf_counter() - begun)
    except torch.OutOfMemoryError:
        return None, 0
    finally:
        step = None
    return seconds, pages_moved() - moved


def run(name, limit=None, steps=STEPS, watched=False, is_fixed=False):
    """One run, and what it needed; the line is written as well."""
    clear()
    torch.cuda.set_per_process_memory_fraction(1.0 if limit is None else limit / TOTAL)
    before = torch.cuda.memory_reserved()
    pages_before = pages()
    watch = Watch() if watched else None
    base = watch.used() if watch else 0
    if watch:
        watch.start()
    begun = time.perf_counter()
    seconds, moved = seconds_of(steps, is_fixed)
    elapsed = time.perf_counter() - begun
    peak_seen = watch.end() if watch else 0
    stats = torch.cuda.memory_stats()
    line = {
        "allocator": ALLOCATOR,
        "workload": WORKLOAD,
        "run": name,
        "limit": limit,
        "ok": seconds is not None,
        "seconds": elapsed,
        "step_ms": 1000 * statistics.median(seconds) if seconds else None,
        "steps_ms": 1000 * sum(seconds[5:]) if seconds else None,
        "allocated": stats["allocated_bytes.all.peak"],
        "active": stats["active_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.peak"],
        "driver": peak_seen - base + before if watch else None,
        "retries": stats["num_alloc_retries"],
        "syncs": stats["num_sync_all_streams"],
    }
    after = pages()
    if after:
        line["pages"] = {
            key: after[key] - (pages_before or {}).get(key, 0)
            for key in ("created", "moved", "requests", "request_ns")
        }
        line["pages"]["moved_in_second_half"] = moved
        line["pages"]["longest_ns"] = after["longest_ns"]
        line["pages"]["by_time"] = after["by_time"]
    with open(RESULTS, "a", encoding="utf-8") as file:
        print(json.dumps(line), file=file)
    return line


def smallest_limit(live, steps):
    """The smallest of LIMITS under which the workload completes."""
    low, high = 0, len(LIMITS)
    while low < high:
        middle = (low + high) // 2
        if run("limit", LIMITS[middle] * live, steps)["ok"]:
            high = middle
        else:
            low = middle + 1
    return LIMITS[low] if low < len(LIMITS) else None


def main():
    # What libraries keep for themselves is allocated before anything is counted.
    run("first", steps=15)
    free = run("free", watched=True)
    live = free["allocated"]
    unwatched = run("unwatched")
    found = smallest_limit(live, STEPS)
    if ALLOCATOR == "compact":
        run("tight", 1.02 * live)
        run("fixed", is_fixed=True)
    elif found:
        run("tight", found * live)
    print(ALLOCATOR, WORKLOAD, "reserved/live", round(free["reserved"] / live, 4),
          "driver/live", round(free["driver"] / live, 4), "smallest limit", found,
          "step ms", round(unwatched["step_ms"], 2))


if __name__ == "__main__":
    main()
