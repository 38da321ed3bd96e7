# SPDX-License-Identifier: MIT
"""upstream.py OUT PYTORCH_SOURCE [FILE...]: the work of upstream.sh.

A process per file and allocator runs the cases one after the other, and says in OUT when it begins
one and how it ended. If it crashes or a case takes too long, another process goes on behind that
case. `upstream.py --run RESULTS ALLOCATOR FILE` is such a process.
"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

FILES = (
    "test_cuda.py",
    "test_cuda_multigpu.py",
    "test_cuda_expandable_segments.py",
    "inductor/test_cudagraph_trees.py",
    "test_multiprocessing.py",
)
ALLOCATORS = ("native", "tarn")


# The process that runs cases.


def read(path):
    """case: how it ended; "begun" if it did not."""
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                entry = json.loads(line)
                found[entry["case"]] = entry
    return found


class Recorder(unittest.TestResult):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def note(self, test, outcome, why=""):
        if test.id() == "unittest.suite._ErrorHolder":
            return
        with open(self.path, "a", encoding="utf-8") as file:
            case = test.id().split(".", 1)[1]  # without the module
            print(json.dumps({"case": case, "outcome": outcome, "why": why[-600:]}), file=file)

    def startTest(self, test):
        super().startTest(test)
        self.note(test, "begun")

    def addSuccess(self, test):
        self.note(test, "passed")

    def addError(self, test, err):
        self.note(test, "failed", self._exc_info_to_string(err, test))

    addFailure = addError

    def addSkip(self, test, reason):
        self.note(test, "skipped", str(reason))

    def addExpectedFailure(self, test, err):
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed", "unexpected success")


def cases_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases_of(item)
        else:
            yield item


def run(path, allocator, file):
    """Runs what `path` does not have yet, with the file as the main module, also for processes that
    the cases spawn: with tarn, `python -m tarn.torch` sees to that."""
    if allocator == "tarn":
        import tarn.torch

        assert tarn.torch.kind() == "class"
        os.environ["TARN_TORCH_PROGRAM"] = file
    else:
        sys.modules["__main__"].__spec__ = None
    import torch.testing._internal.common_utils as common

    def run_tests(argv=None):
        done = read(path)
        loaded = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
        left = unittest.TestSuite(
            case for case in cases_of(loaded) if case.id().split(".", 1)[1] not in done
        )
        left.run(Recorder(path))

    common.run_tests = run_tests
    sys.argv = [file]
    sys.path[0] = os.path.dirname(file)
    os.chdir(os.path.dirname(file))
    with open(file, encoding="utf-8") as source:
        code = compile(source.read(), file, "exec")
    space = sys.modules["__main__"].__dict__
    space.update(__file__=file, __doc__=None)
    exec(code, space)


# The process that watches them.


def end(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def watch(process, path, deadline):
    """"ended", "stuck" or "late"."""
    limit = float(os.environ.get("SECONDS_A_CASE", 120))
    size, changed = -1, time.monotonic()
    while process.poll() is None:
        now = time.monotonic()
        present = os.path.getsize(path) if os.path.exists(path) else 0
        if present != size:
            size, changed = present, now
        if now > deadline or now - changed > limit:
            end(process)
            return "late" if now > deadline else "stuck"
        time.sleep(0.2)
    return "ended"


def close_begun(path, why):
    """Writes how the case ended during which the process did; whether there was one."""
    begun = [case for case, entry in read(path).items() if entry["outcome"] == "begun"]
    with open(path, "a", encoding="utf-8") as file:
        for case in begun:
            print(json.dumps({"case": case, "outcome": "failed", "why": why}), file=file)
    return bool(begun)


def run_file(path, allocator, file, log, deadline, gpu):
    """True when all its cases are done."""
    environment = os.environ | ({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {})
    while time.monotonic() < deadline:
        start = ["-m", "tarn.torch"] if allocator == "tarn" else []
        command = [sys.executable, *start, __file__, "--run", path, allocator, file]
        with open(log, "ab") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                start_new_session=True, env=environment,
            )  # fmt: skip
            how = watch(process, path, deadline)
        if how == "late":
            forget_begun(path)
            return False
        why = "took too long" if how == "stuck" else f"ended with status {process.returncode}"
        if not close_begun(path, why):
            return True  # or it could not begin: its log has why
    return False


def forget_begun(path):
    left = [entry for entry in read(path).values() if entry["outcome"] != "begun"]
    with open(path, "w", encoding="utf-8") as file:
        for entry in left:
            print(json.dumps(entry), file=file)


def compare(name, results):
    """Prints the cases that pass natively and not with tarn, and those the other way round."""
    counts = {
        allocator: sum(entry["outcome"] == "passed" for entry in found.values())
        for allocator, found in results.items()
    }
    worse = 0
    for case, theirs in results["native"].items():
        ours = results["tarn"].get(case, {"outcome": "not run", "why": ""})
        if (theirs["outcome"] == "passed") != (ours["outcome"] == "passed"):
            worse += theirs["outcome"] == "passed"
            why = (ours["why"] or theirs["why"]).strip().splitlines()
            print(f"{name} {case}: {theirs['outcome']} / {ours['outcome']}: {(why or [''])[-1]}")
    print(f"{name}: {counts['native']} pass natively, {counts['tarn']} with tarn")
    return counts["native"] - worse, worse


def run_both(stem, name, file, deadline):
    """The results by allocator: one after the other, since cases fill the GPU; or at the same time,
    on the GPUs in GPUS or with TOGETHER=1 on the same one."""
    gpus = dict(zip(ALLOCATORS, os.environ.get("GPUS", "").split()))
    together = gpus or os.environ.get("TOGETHER")

    def run_one(allocator):
        path = f"{stem}.{allocator}.jsonl"
        log = f"{stem}.{allocator}.log"
        if not run_file(path, allocator, file, log, deadline, gpus.get(allocator)):
            print(f"{name}: out of time with {allocator}; run it again to go on")
        return allocator, read(path)

    with ThreadPoolExecutor(len(ALLOCATORS) if together else 1) as pool:
        return dict(pool.map(run_one, ALLOCATORS))


def main(out, source, *files):
    deadline = time.monotonic() + float(os.environ.get("SECONDS", 540))
    os.makedirs(out, exist_ok=True)
    out = os.path.abspath(out)
    passed = failed = skipped = 0
    for name in files or FILES:
        file = os.path.abspath(os.path.join(source, "test", name))
        if not os.path.exists(file):
            print(f"skip: there is no {file}")
            skipped += 1
            continue
        stem = os.path.join(out, name.replace("/", "-").removesuffix(".py"))
        fine, worse = compare(name, run_both(stem, name, file, deadline))
        passed += fine
        failed += worse
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        run(*sys.argv[2:])
    else:
        sys.exit(main(*sys.argv[1:]))
