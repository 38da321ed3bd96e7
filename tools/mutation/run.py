#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py TREE RESULTS [--seconds N] [--sample N] [--seed N] [--jobs N] [--only PREFIX]
[--longest S] [--again RESULTS]: which mutants of an instrumented build (instrument.py) the tests
kill.

First every test runs without a mutant, several at once: one that fails then, or takes more than
S seconds, is left out. It also marks which mutants it reaches. Then each mutant, in random order,
meets the tests that reach it, fastest first, until one fails, crashes or takes too long. RESULTS
is written line by line: the mutant's row of TREE/mutants.tsv, then killed, survived, unreached or
equivalent, and the test that killed it. Ends with a table by folder. TREE/build/check is the
build; tests/mutation/equivalent.tsv lists mutants that no test can kill, and why.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Shell suites are slow and ask the same questions through the program.
TESTS = (r"^(alloc|analysis|capture|device|export|fleet|fuzz|history|page|pinned|property|render"
         r"|replay|report|snapshot|stress|torture|watch)/")


class Test:
    def __init__(self, described, build):
        self.name = described["name"]
        self.command = described["command"]
        self.env = {}
        self.folder = build
        for item in described.get("properties", []):
            if item["name"] == "WORKING_DIRECTORY":
                self.folder = item["value"]
            if item["name"] == "ENVIRONMENT":
                self.env = dict(pair.split("=", 1) for pair in item["value"])
        self.seconds = 0.0
        self.reached = b""

    def run(self, extra, limit):
        """True: passed. None: it took too long."""
        env = {**os.environ, **self.env, **extra}
        process = subprocess.Popen(self.command, cwd=self.folder, env=env, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            return None
        finally:
            try: # and whatever it started
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def read_tests(tree):
    with open(os.path.join(tree, "tests.json"), encoding="utf-8") as f:
        shown = json.load(f)["tests"]
    tests = [Test(t, os.path.join(tree, "build/check")) for t in shown if "command" in t]
    return [t for t in tests if re.match(TESTS, t.name) and not t.command[0].endswith("sh")]


def try_unchanged(test, size, work, longest):
    """Whether it passes without a mutant; notes its time and what it reaches."""
    seen = os.path.join(work, test.name.replace("/", "_"))
    with open(seen, "wb") as f:
        f.truncate(size)
    begun = time.monotonic()
    passed = test.run({"TN_MUTANT_SEEN": seen}, longest)
    test.seconds = time.monotonic() - begun
    with open(seen, "rb") as f:
        test.reached = f.read()
    return passed


def judge(mutant, tests):
    number = int(mutant[0])
    reaching = [t for t in tests if t.reached[number]]
    for test in reaching:
        passed = test.run({"TN_MUTANT": str(number)}, 3 + 10 * test.seconds)
        if not passed:
            return "killed", test.name + (" (time)" if passed is None else "")
    return ("survived" if reaching else "unreached"), ""


def read_equivalent(tree):
    """(file, function, kind, before, after): mutants that change nothing that can be seen."""
    path = os.path.join(tree, "tests/mutation/equivalent.tsv")
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return {tuple(row[:5]) for row in rows}


def print_table(counts):
    print("| folder | mutants | killed | survived | not reached | equivalent "
          "| killed of the rest |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for folder in sorted(counts):
        c = counts[folder]
        judged = c["killed"] + c["survived"] + c["unreached"]
        share = f"{100 * c['killed'] / judged:.1f} %" if judged else "-"
        print(f"| `{folder}` | {judged + c['equivalent']} | {c['killed']} | {c['survived']} | "
              f"{c['unreached']} | {c['equivalent']} | {share} |")


def options():
    parser = argparse.ArgumentParser(description="which mutants the tests kill")
    parser.add_argument("tree")
    parser.add_argument("results")
    parser.add_argument("--seconds", type=int, default=420, help="begin no mutant after these")
    parser.add_argument("--sample", type=int, default=0, help="mutants; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--longest", type=float, default=10, help="seconds a test may take")
    parser.add_argument("--again", help="RESULTS of an earlier run: only what it did not kill")
    parser.add_argument("--only", default="src/", help="files that begin so")
    return parser.parse_args()


def main():
    begun = time.monotonic()
    given = options()
    with open(os.path.join(given.tree, "mutants.tsv"), encoding="utf-8") as f:
        mutants = [line.rstrip("\n").split("\t") for line in f]
    size = len(mutants) + 1
    wanted = [m for m in mutants if m[1].startswith(given.only)]
    if given.again:
        with open(given.again, encoding="utf-8") as f:
            rows = [line.rstrip("\n").split("\t") for line in f]
        left = {tuple(row[:7]) for row in rows if row[7] in ("survived", "unreached")}
        wanted = [m for m in wanted if tuple(m) in left]
    random.Random(given.seed).shuffle(wanted)
    wanted = wanted[:given.sample] if given.sample else wanted
    equivalent = read_equivalent(given.tree)
    tests = read_tests(given.tree)
    counts = {}
    lock = threading.Lock()

    with tempfile.TemporaryDirectory() as work, \
            concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        os.environ["TMPDIR"] = work
        passed = list(pool.map(lambda t: try_unchanged(t, size, work, given.longest), tests))
        for test, good in zip(tests, passed):
            if not good:
                print(f"left out, fails or takes too long without a mutant: {test.name}")
        tests = sorted((t for t, good in zip(tests, passed) if good), key=lambda t: t.seconds)
        print(f"{len(tests)} tests, {time.monotonic() - begun:.0f} s", flush=True)
        with open(given.results, "w", encoding="utf-8") as results:
            def one(mutant):
                if time.monotonic() - begun > given.seconds:
                    return
                if tuple(mutant[i] for i in (1, 3, 4, 5, 6)) in equivalent:
                    verdict, by = "equivalent", ""
                else:
                    verdict, by = judge(mutant, tests)
                folder = "/".join(mutant[1].split("/")[:2])
                with lock:
                    counts.setdefault(folder, dict.fromkeys(
                        ("killed", "survived", "unreached", "equivalent"), 0))[verdict] += 1
                    results.write("\t".join([*mutant, verdict, by]) + "\n")
                    results.flush()

            list(pool.map(one, wanted))
    print_table(counts)
    print(f"seed {given.seed}, {sum(sum(c.values()) for c in counts.values())} of "
          f"{len(mutants)} mutants, {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
