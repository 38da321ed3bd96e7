#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py TREE RESULTS [--seconds N] [--sample N] [--seed N] [--jobs N] [--only PREFIX]
[--longest S] [--tests REGEX] [--again RESULTS]: which mutants of an instrumented build
(instrument.py) the tests kill.

Tests are those of CTest that are no shell suites, and each case of tests/cli/cases. First every
test runs without a mutant, several at once: one that fails then, or takes more than S seconds, is
left out; of a unit test that takes so long, cases stand for the whole. It also marks which mutants
it reaches. Then each mutant, in random order, meets the tests that reach it, fastest first, until
one fails, crashes or takes too long. RESULTS is written line by line: the mutant's row of
TREE/mutants.tsv, then killed, survived, unreached, explained or equivalent, and the test that
killed it. Ends with a table by folder. TREE/build/check is the build. tests/mutation/equivalent.tsv
lists mutants that no test can kill, and why; survivors.tsv, those that none does: they were looked
at (explained), and count as survivors.
"""
import argparse
import concurrent.futures
import glob
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Other shell suites are slow and ask the same questions through the program.
TESTS = (r"^(alloc|analysis|capture|device|export|fleet|fuzz|history|page|pinned|property|render"
         r"|replay|report|snapshot|stress|torture|watch)/")
CASES_MOST = 40 # of those that reach a mutant, so many meet it, drawn by its number


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
    build = os.path.join(tree, "build/check")
    tests = [Test(t, build) for t in shown if "command" in t]
    return [t for t in tests if re.match(TESTS, t.name) and not t.command[0].endswith("sh")] + \
        read_cases(tree, build)


def read_cases(tree, build):
    """Each case of the program's output is a test of its own here."""
    folder = os.path.join(tree, "tests/cli/cases")
    script = os.path.join(tree, "tests/cli/run.sh")
    names = sorted(os.path.relpath(path, folder)[:-len(".cmd")]
                   for path in glob.glob(os.path.join(folder, "*/*.cmd")))
    return [Test({"name": "case/" + name,
                  "command": ["sh", script, os.path.join(build, "cli/tarn"), folder, name]}, build)
            for name in names]


def cases_of(test, tree):
    """The cases of a slow program of unit tests, as tests; run one by one (one_case.c)."""
    program = os.path.basename(test.command[0])
    helper = os.path.join(tree, "one_case.so")
    sources = glob.glob(os.path.join(tree, "tests/**", program + ".c"), recursive=True)
    if not sources or not os.path.exists(helper):
        return []
    with open(sources[0], encoding="utf-8") as f:
        names = re.findall(r"cmocka_unit_test(?:_setup_teardown)?\((\w+)", f.read())
    cases = []
    for name in names:
        case = Test({"name": f"{test.name}/{name}", "command": test.command}, test.folder)
        case.env = {**test.env, "LD_PRELOAD": helper, "TN_CASE": name}
        cases.append(case)
    return cases


def try_test(test, tree, size, work, longest):
    """What of it passes in time: the test, or some of its cases."""
    passed = try_unchanged(test, size, work, longest)
    if passed:
        return [test]
    good = [c for c in (cases_of(test, tree) if passed is None else [])
            if try_unchanged(c, size, work, longest)]
    print(f"left out, {'takes too long' if passed is None else 'fails'} without a mutant: "
          f"{test.name}" + (f", but for {len(good)} cases" if good else ""))
    return good


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
    cases = [t for t in reaching if t.name.startswith("case/")]
    if len(cases) > CASES_MOST:
        met = set(random.Random(number).sample(cases, CASES_MOST))
        reaching = [t for t in reaching if t in met or not t.name.startswith("case/")]
    for test in reaching:
        passed = test.run({"TN_MUTANT": str(number)}, 3 + 10 * test.seconds)
        if not passed:
            return "killed", test.name + (" (time)" if passed is None else "")
    return ("survived" if reaching else "unreached"), ""


def read_known(tree, name):
    """(file, function, kind, before, after) of the mutants in a list of tests/mutation."""
    path = os.path.join(tree, "tests/mutation", name)
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return {tuple(row[:5]) for row in rows}


def count(rows):
    """Verdicts by folder, of rows of RESULTS."""
    counts = {}
    for row in rows:
        folder = "/".join(row[1].split("/")[:2])
        counts.setdefault(folder, dict.fromkeys(
            ("killed", "explained", "survived", "unreached", "equivalent"), 0))[row[7]] += 1
    return counts


def judged_of(counts):
    """How many of a folder's mutants a test could kill."""
    return sum(counts.values()) - counts["equivalent"]


def print_table(counts):
    print("| folder | mutants | equivalent | killed | of the rest | explained | survived "
          "| not reached |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for folder in sorted(counts):
        c = counts[folder]
        judged = judged_of(c)
        share = f"{100 * c['killed'] / judged:.1f} %" if judged else "-"
        print(f"| `{folder}` | {sum(c.values())} | {c['equivalent']} | {c['killed']} | {share} | "
              f"{c['explained']} | {c['survived']} | {c['unreached']} |")


GOALS = {"src/alloc": 0.9}  # and 0.8 elsewhere (docs/trust.md)


def highest_share(killed, judged):
    """The upper end of Wilson's 95 % interval of a share."""
    z = 1.96
    share = killed / judged
    spread = z * math.sqrt(share * (1 - share) / judged + z * z / (4 * judged * judged))
    return (share + z * z / (2 * judged) + spread) / (1 + z * z / judged)


def below_goal(counts):
    """Folders whose share of killed mutants is surely less than it should be."""
    for folder, c in sorted(counts.items()):
        judged = judged_of(c)
        goal = GOALS.get(folder, 0.8)
        if judged and highest_share(c["killed"], judged) < goal:
            yield f"{folder}: {c['killed']} of {judged} are surely less than {100 * goal:.0f} %"


def options():
    parser = argparse.ArgumentParser(description="which mutants the tests kill")
    parser.add_argument("tree")
    parser.add_argument("results")
    parser.add_argument("--seconds", type=int, default=420, help="begin no mutant after these")
    parser.add_argument("--sample", type=int, default=0, help="mutants; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--longest", type=float, default=10, help="seconds a test may take")
    parser.add_argument("--tests", default="", help="only tests whose name has this in it")
    parser.add_argument("--again", help="RESULTS of an earlier run: only what it did not kill")
    parser.add_argument("--only", default="src/", help="files that begin so")
    return parser.parse_args()


def main():
    begun = time.monotonic()
    given = options()
    given.tree = os.path.abspath(given.tree) # tests run in the build's folder
    with open(os.path.join(given.tree, "mutants.tsv"), encoding="utf-8") as f:
        mutants = [line.rstrip("\n").split("\t") for line in f]
    size = len(mutants) + 1
    wanted = [m for m in mutants if m[1].startswith(given.only)]
    if given.again:
        with open(given.again, encoding="utf-8") as f:
            rows = [line.rstrip("\n").split("\t") for line in f]
        left = {tuple(row[:7]) for row in rows if row[7] not in ("killed", "equivalent")}
        wanted = [m for m in wanted if tuple(m) in left]
    random.Random(given.seed).shuffle(wanted)
    wanted = wanted[:given.sample] if given.sample else wanted
    equivalent = read_known(given.tree, "equivalent.tsv")
    explained = read_known(given.tree, "survivors.tsv")
    tests = [t for t in read_tests(given.tree) if re.search(given.tests, t.name)]
    texts = {tuple(m[i] for i in (1, 3, 4, 5, 6)) for m in mutants}
    for row in sorted((equivalent | explained) - texts):
        print(f"listed in tests/mutation, but there is no such mutant: {' '.join(row)}")
    judged = []
    lock = threading.Lock()

    with tempfile.TemporaryDirectory() as work, \
            concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        os.environ["TMPDIR"] = work
        tried = pool.map(lambda t: try_test(t, given.tree, size, work, given.longest), tests)
        tests = sorted((t for good in tried for t in good), key=lambda t: t.seconds)
        print(f"{len(tests)} tests, {time.monotonic() - begun:.0f} s", flush=True)
        with open(given.results, "w", encoding="utf-8") as results:
            def one(mutant):
                if time.monotonic() - begun > given.seconds:
                    return
                known = tuple(mutant[i] for i in (1, 3, 4, 5, 6))
                if known in equivalent:
                    verdict, by = "equivalent", ""
                else:
                    verdict, by = judge(mutant, tests)
                    if verdict != "killed" and known in explained:
                        verdict = "explained"
                with lock:
                    judged.append([*mutant, verdict, by])
                    results.write("\t".join(judged[-1]) + "\n")
                    results.flush()

            list(pool.map(one, wanted))
    counts = count(judged)
    low = list(below_goal(counts)) if judged else ["no mutant was tried"]
    print_table(counts)
    for text in low:
        print(f"too few: {text}")
    print(f"seed {given.seed}, {len(judged)} of "
          f"{len(mutants)} mutants, {time.monotonic() - begun:.0f} s")
    return 1 if low and not given.again else 0  # what is left of an earlier run has no share


if __name__ == "__main__":
    sys.exit(main())
