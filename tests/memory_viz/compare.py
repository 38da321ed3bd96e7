# SPDX-License-Identifier: MIT
"""compare.py TARN DUMP: what PyTorch's _memory_viz makes of snapshots that a program of libtarn
dumped, and what tarn makes of them, byte for byte.

_memory_viz is that of the torch that is installed, or the file that TARN_MEMORY_VIZ names. Without
either everything is skipped.
"""

import contextlib
import copy
import importlib.util
import inspect
import io
import os
import pickle
import subprocess
import sys
import tempfile

SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:40,roundup_power2_divisions:4",
    "policy:compact",  # with pages, under a key that PyTorch does not know
)


def memory_viz():
    """The module, or None and why not."""
    path = os.environ.get("TARN_MEMORY_VIZ")
    if path:
        spec = importlib.util.spec_from_file_location("memory_viz", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module, None
    try:
        from torch.cuda import _memory_viz
    except ImportError as error:
        return None, f"{error}, and TARN_MEMORY_VIZ names no _memory_viz.py"
    return _memory_viz, None


def unchanged(folded):
    """In the place of the script that draws flame graphs."""
    return folded


def views(viz):
    """Name of a view: what PyTorch makes of a snapshot, and tarn's arguments for the same."""
    return {
        "stats": (viz.segsum, ["stats"]),
        "trace": (viz.trace, ["trace", "--compat"]),
        "segments": (lambda data: viz.segments(data, unchanged), ["segments", "--folded"]),
        "memory": (lambda data: viz.memory(data, unchanged), ["memory", "--folded"]),
    }


def without_unknown(viz):
    """What of a text is compared. Before PyTorch knew annotations it printed them as dicts."""
    if "annotate" in inspect.getsource(viz.trace):
        return lambda text: text
    return lambda text: "\n".join(
        line for line in text.split("\n")
        if not line.startswith(("# annotate", "{'action': 'annotate'"))
    )


def freed_differs(viz, tarn, path, data):
    """Whether `tarn trim --drop-freed` keeps other events than trace_plot's filter does, which
    forgets no annotations and no completed frees of what the trace did not allocate."""
    with contextlib.redirect_stdout(io.StringIO()):
        filtered = viz.filter_alloc_free_pairs(copy.deepcopy(data))
    trimmed = path + ".trimmed.pickle"
    subprocess.run([tarn, "trim", "--drop-freed", "--force", path, trimmed], check=True)
    with open(trimmed, "rb") as file:
        ours = pickle.load(file)

    def of_both(snapshot):
        return [
            [(e["action"], e.get("addr"), e["size"]) for e in trace
             if e["action"] not in ("annotate", "free_completed")]
            for trace in snapshot["device_traces"]
        ]

    return differs("trace_plot -f", str(of_both(filtered)), str(of_both(ours)))


def tarn_says(tarn, arguments, path):
    command = [tarn, arguments[0], path, *arguments[1:]]
    if "--folded" in arguments:
        command += ["--output", "-"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def differs(name, theirs, ours):
    """Shows where. Standard output of tarn has one newline more, as PyTorch's program."""
    if ours in (theirs, theirs + "\n"):
        return False
    print(f"{name} differs")
    for number, (a, b) in enumerate(zip(theirs.splitlines(), ours.splitlines()), 1):
        if a != b:
            print(f"line {number}\n  PyTorch: {a}\n  tarn:    {b}")
            break
    else:
        print(f"  PyTorch has {len(theirs)} characters, tarn {len(ours)}")
    return True


def main(tarn, dump):
    viz, why = memory_viz()
    if viz is None:
        print(f"skip: {why}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    compared = without_unknown(viz)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, settings in enumerate(SETTINGS):
            path = os.path.join(folder, f"{number}.pickle")
            subprocess.run([dump, path, settings], check=True)
            with open(path, "rb") as file:
                data = pickle.load(file)
            for name, (make, arguments) in views(viz).items():
                with contextlib.redirect_stdout(io.StringIO()):
                    theirs = compared(make(data))
                ours = compared(tarn_says(tarn, arguments, path))
                wrong = differs(f"{name} ({settings})", theirs, ours)
                failed += wrong
                passed += not wrong
            if hasattr(viz, "filter_alloc_free_pairs"):
                wrong = freed_differs(viz, tarn, path, data)
                failed += wrong
                passed += not wrong
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
