#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""repeat.py SNAPSHOT MIB STEP TIMES FILE: a snapshot with a trace in which one step of a recorded
run is repeated, for `tarn replay`: what a program does whose steps are all alike.

A step ends where the least is active of a stretch in which it is less than MIB, after half as much
again was (gpt2_varlen: 1600, resnet_sizes: 350). STEP is the number of the one to repeat, from 0,
or "all" for all of them, in a row. Blocks that were active when it began are allocated first,
blocks that it allocates and does not free are left out. The number of pages that move in the later
half is that of TIMES less that of half of them.
"""

import gzip
import pickle
import sys

ACTIONS = "alloc", "free_requested", "free_completed"


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path) as file:
        trace = pickle.load(file)["device_traces"][0]
    return [event for event in trace if event["action"] in ACTIONS]


def active_after(events):
    active = 0
    for event in events:
        if event["action"] == "alloc":
            active += event["size"]
        elif event["action"] == "free_completed":
            active -= event["size"]
        yield active


def step_ends(events, low):
    """Numbers of the events after which a step has ended."""
    curve = list(active_after(events))
    ends, lowest, was_high = [], None, False
    for number, active in enumerate(curve):
        was_high = was_high or active > 1.5 * low
        if was_high and active < low:
            if lowest is None or active < curve[lowest]:
                lowest = number
        elif lowest is not None:
            ends.append(lowest)
            lowest, was_high = None, False
    return ends


def blocks_before(events):
    live = {}
    for event in events:
        if event["action"] == "alloc":
            live[event["addr"]] = event
        elif event["action"] == "free_completed":
            live.pop(event["addr"], None)
    return list(live.values())


def whole_blocks(events):
    """The events of blocks that live and end among these."""
    begun, whole = {}, set()
    for number, event in enumerate(events):
        if event["action"] == "alloc":
            begun[event["addr"]] = [number]
        elif event["addr"] in begun:
            begun[event["addr"]].append(number)
            if event["action"] == "free_completed":
                whole.update(begun.pop(event["addr"]))
    return [events[number] for number in sorted(whole)]


def main():
    source, low, which, times, target = sys.argv[1:]
    events = load(source)
    ends = step_ends(events, float(low) * (1 << 20))
    first, last = (0, len(ends) - 1) if which == "all" else (int(which), int(which) + 1)
    begin, end = ends[first] + 1, ends[last] + 1
    step = whole_blocks(events[begin:end])
    begin_us = step[0]["time_us"]
    length_us = events[end - 1]["time_us"] - begin_us + 1000
    trace = [dict(event, time_us=begin_us, frames=[]) for event in blocks_before(events[:begin])]
    for turn in range(int(times)):
        trace += [dict(event, time_us=event["time_us"] + turn * length_us, frames=[])
                  for event in step]
    with open(target, "wb") as file:
        pickle.dump({"segments": [], "device_traces": [trace], "allocator_settings": {}}, file,
                    protocol=4)


if __name__ == "__main__":
    main()
