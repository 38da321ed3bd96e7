# SPDX-License-Identifier: MIT
"""check.py TARN FOLDER: holds tarn against what record.py recorded. No GPU is needed.

Of every recording: the replay under its own settings comes out exactly, in addresses and counters;
`tarn check` finds nothing; the peaks are those that PyTorch counted; where PyTorch's texts are
beside it, ours are the same, byte for byte; every command reads it. Of workloads that were recorded
under several settings and asked for the same in all: what the replay of one predicts for the others
is what was measured. Exactly so for growing segments; where the driver chooses the address of each
segment, and a trace of other settings does not have them, blocks of one size may be taken in
another order: then the reserved peak is within NEAR of it, and how many are exact is printed.
"""

import glob
import gzip
import json
import os
import pickle
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
NEAR = 0.08
# The trace is not whole: a replay says what it does not know.
PARTIAL = ("ring", "late", "state_only")
passed = failed = skipped = exact = near = 0


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
    settings = [argument for conf in confs for argument in ("--conf", conf)]
    code, out, error = say(tarn, path, ["replay", "--json", *settings])
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
    same = run["first_other_entry"] == -1 and run["same_address"] == run["allocations"]
    verdict(same and not wrong, os.path.basename(path), "under its own settings: first other",
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


def requests(path):
    """What was asked for and given back, in order, without addresses."""
    with gzip.open(path) as file:
        trace = pickle.load(file)["device_traces"][0]
    live, asked = {}, []
    for entry in trace:
        if entry["action"] == "alloc":
            live[entry["addr"]] = len(asked)
            asked.append((entry["size"], entry["stream"]))
        elif entry["action"] == "free_requested":
            asked.append(live.pop(entry["addr"], None))
    return asked


def check_prediction(name, conf, run, stats):
    global exact, near
    wrong = differences(run, stats)
    measured = stats[COUNTERS["peak_reserved"]]
    is_near = abs(run["peak_reserved"] - measured) <= NEAR * measured
    exact += not wrong
    near += bool(wrong)
    verdict(not wrong or (is_near and "expandable" not in conf), name, f"under {conf!r}:",
            "; ".join(wrong))


def check_others(tarn, recordings):
    """recordings: those of one case, (path, about) by settings."""
    global skipped
    confs = sorted(recordings)
    asked = requests(recordings[""][0])
    alike = [conf for conf in confs if requests(recordings[conf][0]) == asked]
    if alike != confs:
        print(f"skip: {recordings[''][1]['case']} asked for other things under "
              f"{len(confs) - len(alike)} of {len(confs)} settings")
        skipped += len(confs) - len(alike)
    for conf in alike:
        path = recordings[conf][0]
        made = replay(tarn, path, alike)
        for other, run in zip(alike, made["runs"] if made else []):
            check_prediction(os.path.basename(path), other, run, recordings[other][1]["stats"])


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
    print(f"predictions: {exact} exact, {near} not")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
