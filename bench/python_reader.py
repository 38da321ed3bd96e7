# SPDX-License-Identifier: MIT
"""python_reader.py ORIGIN NAME SNAPSHOT EVENTS: CPython's pickle.load of a snapshot that bench made
itself, as lines of CSV (figure.h)."""

import pickle
import sys
import time


def main():
    origin, name, path, events = sys.argv[1:5]
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        with open(path, "rb") as file:
            pickle.load(file)
        seconds.append(time.perf_counter() - begin)
    seconds.sort()
    with open(path, "rb") as file:
        size = file.seek(0, 2)
    for what, unit, amount in (
        ("read_mb", "MB/s", size / 1e6),
        ("read_events", "M/s", float(events) / 1e6),
    ):
        rates = [amount / s for s in (seconds[1], seconds[2], seconds[0])]
        figures = ",".join(f"{rate:.2f}" for rate in rates)
        print(f"{origin},CPython,{what}_{name},{unit},{figures}")


if __name__ == "__main__":
    main()
