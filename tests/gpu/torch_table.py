# SPDX-License-Identifier: MIT
"""Results of torch_plug.sh.

torch_table.py line LOG CASE ALLOCATOR STATUS: the line of results.jsonl for one run.
torch_table.py table RESULTS: a line a case, pairs compared; the last line counts them.
"""

import json
import statistics
import sys

# What two runs with the same work must agree in, and what may differ by how much.
SAME_LOSSES = (
    "gpt2", "gpt2_expandable", "graph_training", "side_streams", "growth", "compiled",
    "compiled_expandable", "gpt2_compact", "side_streams_compact", "compiled_compact",
)  # fmt: skip
# Cases that show their events must show the same; another policy has other counters.
SAME_STATS = tuple(name for name in SAME_LOSSES if not name.endswith("_compact"))
TIMED = ("gpt2", "gpt2_expandable", "gpt2_compact")
STEP_RATIO_MAX = 1.01


def read_line(log, case, allocator, status):
    """The JSON line that the case printed, or why there is none."""
    result = {"ok": False, "why": f"ended with status {status} and printed no result"}
    with open(log, encoding="utf-8", errors="replace") as file:
        for text in file:
            if text.startswith("{"):
                try:
                    result = json.loads(text)
                except ValueError:
                    continue
    if status == 124:
        result = {"ok": False, "why": "ran out of time"}
    elif status != 0 and result["ok"]:  # a crash at the end of the process
        result.update(ok=False, why=f"ended with status {status} after its result")
    return {"case": case, "allocator": allocator, **result}


def differing(ours, theirs):
    return sorted(k for k in theirs if ours.get(k) != theirs[k])


def compare(name, ours, theirs, again):
    """What is wrong with a pair, and what to show of it."""
    wrong, shown = [], []
    if name in SAME_LOSSES and ours["losses"] != theirs["losses"]:
        # Where torch alone does not repeat itself, equal losses cannot be asked for.
        if again and again["losses"] != theirs["losses"]:
            shown.append("losses differ, and so do two runs of torch")
        else:
            wrong.append("losses differ")
    elif name in SAME_LOSSES:
        shown.append("same losses")
    if name in SAME_STATS:
        keys = differing(ours["stats"], theirs["stats"])
        if keys:
            wrong.append(f"{len(keys)} counters differ: {', '.join(keys[:4])}")
        else:
            shown.append("same counters")
    if "reserved_peak" in ours:
        shown.append(f"reserved peak {ours['reserved_peak']:,} / {theirs['reserved_peak']:,}")
    if "events" in ours:
        if ours["events"] != theirs["events"]:
            wrong.append(f"events differ: {ours['events']} / {theirs['events']}")
        else:
            shown.append(ours["events"])
        if ours["annotations"] != theirs["annotations"]:
            wrong.append("annotations differ")
        shown.append(f"a step recorded: {ours['cost']} / {theirs['cost']}")
        shown.append(ours["with_python"])
    if "memory" in ours:
        (shown if ours["memory"] == theirs["memory"] else wrong).append(ours["memory"])
    if "ns" in ours:
        pairs = ((kind, ours["ns"][kind], theirs["ns"][kind]) for kind in theirs["ns"])
        shown.append(", ".join(f"{kind} {a:.0f} / {b:.0f} ns" for kind, a, b in pairs))
    if "step_ms" in ours:
        base = theirs["step_ms"]
        ratio = ours["step_ms"] / base
        shown.append(f"step {ours['step_ms']:.3f} / {base:.3f} ms = {ratio:.4f}")
        if name in TIMED and ratio > STEP_RATIO_MAX:
            wrong.append(f"a step takes {ratio:.4f} times as long")
    return wrong, shown


def first(repeats):
    """The first of a run's repeats, with the median of all their times; None when there is none."""
    if not repeats:
        return None
    times = [run["step_ms"] for run in repeats if "step_ms" in run]
    result = dict(repeats[0])
    if times:
        result["step_ms"] = statistics.median(times)
    if "ns" in result:
        kinds = result["ns"]
        result["ns"] = {
            kind: statistics.median(run["ns"][kind] for run in repeats) for kind in kinds
        }
    return result


def judge(name, runs):
    """(passed, text) of one case: allocator to its runs."""
    for allocator, repeats in runs.items():
        for run in repeats:
            if not run["ok"]:
                return False, f"{allocator}: {run.get('why', 'no result')}"
    ours, theirs = first(runs.get("tarn")), first(runs.get("native"))
    if ours and theirs:
        again = runs["native"][1] if len(runs["native"]) > 1 else None
        wrong, shown = compare(name, ours, theirs, again)
        return not wrong, "; ".join(wrong + shown)
    extra = {k: v for k, v in (ours or theirs).items() if isinstance(v, str)}
    hidden = ("case", "allocator", "torch")
    return True, "; ".join(f"{k}: {v}" for k, v in extra.items() if k not in hidden)


def collect(path):
    """case: allocator: its runs. Runs called CASE_again and CASE_third are repeats of the case."""
    cases = {}
    with open(path, encoding="utf-8") as file:
        runs = [json.loads(text) for text in file]
    names = {run["case"] for run in runs}
    for run in runs:
        name, allocator = run["case"], run["allocator"]
        stem = name.removesuffix("_again").removesuffix("_third")
        name = stem if stem in names else name
        cases.setdefault(name, {}).setdefault(allocator, []).append(run)
    return cases


def table(path):
    passed = failed = 0
    for name, runs in collect(path).items():
        fine, text = judge(name, runs)
        passed += fine
        failed += not fine
        print(f"{'ok    ' if fine else 'FAILED'} {name:18} {text[:240]}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 0 if passed and not failed else 1


def main(arguments):
    if arguments[:1] == ["line"]:
        log, case, allocator, status = arguments[1:]
        print(json.dumps(read_line(log, case, allocator, int(status))))
        return 0
    return table(arguments[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
