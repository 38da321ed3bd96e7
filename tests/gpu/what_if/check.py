# SPDX-License-Identifier: MIT
"""check.py TARN FOLDER: holds tarn against what record.py recorded. No GPU is needed.

Of every recording: the replay under its own settings comes out exactly, in addresses and counters;
`tarn check` finds nothing; the peaks are those that PyTorch counted; where PyTorch's texts are
beside it, ours are the same, byte for byte; every command reads it. Of workloads that were recorded
under several settings: what the replay of one predicts for the others is what was measured.
"""

import glob
import gzip
import json
import os
import subprocess
import sys

COUNTERS = {
    "peak_reserved": "reserved_bytes.all.peak",
    "peak_allocated": "allocated_bytes.all.peak",
    "peak_active": "active_bytes.all.peak",
    "peak_requested": "requested_bytes.all.peak",
    "peak_segments": "segment.all.peak",
    "num_device_alloc": "num_device_alloc",
    "num_device_free": "num_device_free",
    "num_alloc_retries": "num_alloc_retries",
    "num_ooms": "num_ooms",
    "allocations": "allocation.all.allocated",
}
TEXTS = {
    "stats.txt": ["stats"],
    "trace.txt": ["trace", "--compat"],
    "segments.folded": ["segments", "--folded", "-o", "-"],
    "memory.folded": ["memory", "--folded", "-o", "-"],
}
COMMANDS = (
    ["info"], ["top"], ["top", "--by", "category"], ["top", "--by", "module"], ["peak"], ["live"],
    ["oom"], ["frag"], ["leaks"], ["churn"], ["fit"], ["view", "-o", "-"],
)
# The trace is not whole: a replay says what it does not know.
PARTIAL = ("ring", "late", "state_only")
passed = failed = 0


def verdict(good, *what):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print("FAILED:", *what)


def say(tarn, path, arguments):
    command = [tarn, arguments[0], path, *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def replay(tarn, path, confs):
    code, out, error = say(tarn, path, ["replay", "--json", *(a for c in confs for a in ("--conf", c))])
    if code:
        verdict(False, path, "replay ends with", code, error.strip())
        return None
    return json.loads(out)


def differences(run, stats):
    return [f"{ours} {run[ours]} is not {stats[theirs]}"
            for ours, theirs in COUNTERS.items() if run[ours] != stats[theirs]]


def check_own(tarn, path, about):
    made = replay(tarn, path, [])
    if made is None:
        return
    run = made["runs"][0]
    wrong = [] if about["case"] in PARTIAL else differences(run, about["stats"])
    exact = run["first_other_entry"] == -1 and run["same_address"] == run["allocations"]
    verdict(exact and not wrong, os.path.basename(path), "under its own settings: first other entry",
            run["first_other_entry"], f"{run['same_address']} of {run['allocations']} addresses",
            "; ".join(wrong), "; ".join(made["notes"]))


def check_peak(tarn, path, about):
    code, out, error = say(tarn, path, ["peak", "--json"])
    if code or about["case"] in PARTIAL:
        verdict(not code, path, "peak", code, error.strip())
        return
    device = json.loads(out)["data"]["devices"][0]
    ours = [device["requested_peak"]["requested_bytes"], device["reserved_peak"]["reserved_bytes"]]
    theirs = [about["stats"][f"{what}_bytes.all.peak"] for what in ("requested", "reserved")]
    verdict(ours == theirs, os.path.basename(path), "peaks are", theirs, "and not", ours)


def check_texts(tarn, path):
    for kind, arguments in TEXTS.items():
        text = path[: -len("pickle.gz")] + kind + ".gz"
        if not os.path.exists(text):
            continue
        with gzip.open(text, "rt", encoding="utf-8") as file:
            theirs = file.read()
        code, ours, error = say(tarn, path, arguments)
        same = ours in (theirs, theirs + "\n")
        where = next((f"line {n}: PyTorch {a!r}, tarn {b!r}" for n, (a, b) in
                      enumerate(zip(theirs.splitlines(), ours.splitlines()), 1) if a != b),
                     f"{len(theirs)} characters, tarn {len(ours)}")
        verdict(code == 0 and same, os.path.basename(text), "" if same else where, error.strip())


def check_commands(tarn, path):
    code, out, error = say(tarn, path, ["check"])
    verdict(code == 0, os.path.basename(path), "check:", code, (out + error).strip()[:300])
    for arguments in COMMANDS:
        code, out, error = say(tarn, path, arguments)
        verdict(code == 0 and out, os.path.basename(path), *arguments, "ends with", code,
                error.strip())


def check_others(tarn, recordings):
    """recordings: those of one case, (path, about) by settings."""
    confs = sorted(recordings)
    for conf, (path, _) in sorted(recordings.items()):
        made = replay(tarn, path, confs)
        for other, run in zip(confs, made["runs"] if made else []):
            wrong = differences(run, recordings[other][1]["stats"])
            verdict(not wrong, os.path.basename(path), f"under {other!r}:", "; ".join(wrong))


def main(tarn, folder):
    by_case = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.pickle.gz"))):
        with open(path[: -len("pickle.gz")] + "json", encoding="utf-8") as file:
            about = json.load(file)
        check_own(tarn, path, about)
        check_peak(tarn, path, about)
        check_texts(tarn, path)
        check_commands(tarn, path)
        if about["fraction"] == 1:
            by_case.setdefault(about["case"], {})[about["settings"]] = (path, about)
    for recordings in by_case.values():
        if len(recordings) > 2:
            check_others(tarn, recordings)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
