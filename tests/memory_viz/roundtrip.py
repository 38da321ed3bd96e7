# SPDX-License-Identifier: MIT
"""roundtrip.py TARN: snapshots with every key that PyTorch 2.12 to 2.14 writes, and keys that
nobody writes yet, are read and written again without losing one. The files are made here."""

import copy
import json
import os
import pickle
import subprocess
import sys
import tempfile

FRAME = {"name": "step", "filename": "train.py", "line": 12}
OTHER = {"name": "at::rand", "filename": "libtorch.so", "line": 0}
KNOWN = {
    "name": "f", "filename": "g.py", "line": 3, "fx_node_op": "call", "fx_node_name": "n",
    "fx_node_target": "t", "fx_original_trace": "o",
}  # fmt: skip
UNKNOWN_FRAME = dict(KNOWN, column=7, fx_node_meta={"stage": [1, 2.5, None]})
METADATA = {"request": 17, "tags": ["a", "b", ("x", 1, True)], "nested": {"deep": {"er": [[], {}]}}}


def event(action, address, size, time, **more):
    key = "device_free" if action == "oom" else "addr"
    return {
        "action": action, key: address, "size": size, "stream": 0, "time_us": time,
        "compile_context": "N/A", "user_metadata": "", "frames": [FRAME, OTHER], **more,
    }  # fmt: skip


def segment(address, **more):
    block = {"address": address, "size": 1 << 20, "requested_size": 1000,
             "state": "active_allocated", "frames": [FRAME]}  # fmt: skip
    free = {"address": address + (1 << 20), "size": 1 << 20, "requested_size": 0,
            "state": "inactive", "frames": [], "owner": {"id": 1}}  # fmt: skip
    return {
        "device": 0, "address": address, "total_size": 2 << 20, "allocated_size": 1 << 20,
        "active_size": 1 << 20, "requested_size": 1000, "stream": 0, "segment_type": "small",
        "segment_pool_id": (0, 1), "is_expandable": False, "frames": [UNKNOWN_FRAME], **more,
        "blocks": [block, free],
    }  # fmt: skip


def settings(**more):
    return {
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": True,
        "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
        "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}, **more,
    }  # fmt: skip


def everything():
    events = [
        event("segment_alloc", 4096, 2 << 20, 1, pool_id=(0, 1)),
        event("alloc", 4096, 1000, 2, pool_id=(0, 1), internal_metadata="graph 3",
              user_metadata=METADATA),
        event("annotate", 4096, 1000, 3, user_metadata=METADATA, annotation_id=2**63),
        event("alloc", 1 << 30, 500, 4, user_metadata=None, internal_metadata={"k": -5}),
        event("alloc", 1 << 31, 500, 5, forward_frames=[OTHER, FRAME], category="grad"),
        event("free_requested", 1 << 31, 500, 6, priority=0.25, last_stack=[[FRAME], FRAME]),
        event("free_completed", 1 << 31, 500, 7, priority=0.25, huge=2**63 + 5),
        event("oom", 12345, 2 << 30, 8, user_metadata=[1, (2, 3), (), (4,)]),
        event("quarantine", 1 << 31, 500, 9, flag=True),
    ]
    return {
        "segments": [segment(4096, numa_node=1, tags=["a", {"b": None}])],
        "device_traces": [events, []],
        "allocator_settings": settings(
            trace_alloc_overflowed=[True, False], trace_alloc_max_entries=100000,
            per_device={"0": {"limit": 1.5}}),
        "external_annotations": [
            {"stage": "START", "name": "step", "device": 0, "time_us": 1, "metadata": METADATA}],
        "host_segments": [segment(1 << 40, is_registered=True)],
        "host_traces": [[event("alloc", 1 << 40, 1000, 2, pool_id=(0, 0))]],
        "producer": {"name": "xpu", "version": (2, 14, "dev")},
        "format_version": 3,
    }  # fmt: skip


def as_json(value):
    return json.loads(json.dumps(value))


def many_items():
    """Containers longer than the batches in which pickles are written, and deep ones."""
    value = everything()
    deep = 1
    for i in range(35):
        deep = [deep] if i % 3 else {"in": (deep, i)}
    value["long"] = list(range(2500))
    value["wide"] = {f"key{i}": i for i in range(2500)}
    value["tuple"] = tuple(range(2500))
    value["deep"] = deep
    return value


def shared():
    """One dict as the metadata of many events, as Python shares it."""
    value = everything()
    for i in range(3000):
        value["device_traces"][0].append(
            event("alloc", (1 << 32) + i, 8, 10 + i, user_metadata=METADATA, seen=METADATA))
    return value


def run(tarn, *arguments):
    done = subprocess.run([tarn, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def convert(tarn, folder, value, protocol, through):
    first = os.path.join(folder, "in.pickle")
    with open(first, "wb") as out:
        pickle.dump(value, out, protocol)
    for i, ending in enumerate(through):
        second = os.path.join(folder, f"out{i}.{ending}")
        run(tarn, "convert", "--force", first, second)
        first = second
    with open(first, "rb") as file:
        return json.load(file) if first.endswith("json") else pickle.load(file)


def strict(value):
    """With types: 1, True and 1.0 are equal in Python, tuples and lists are not."""
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(strict(item) for item in value)
    return (type(value).__name__, value)


def first_difference(a, b, path="snapshot"):
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        pairs = [(f"{path}[{key!r}]", a[key], b[key]) for key in a]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = [(f"{path}[{i}]", a[i], b[i]) for i in range(len(a))]
    else:
        pairs = []
    for where, left, right in pairs:
        if left != right:
            return first_difference(left, right, where)
    return f"{path}: {a!r} became {b!r}"


def check(name, want, have):
    want, have = strict(want), strict(have)
    if want == have:
        print(f"ok {name}")
        return True
    print(f"FAIL {name}: {first_difference(want, have)}")
    return False


def check_trim(tarn, folder):
    """trim keeps the keys, and drops what it does not know where names must not be passed on."""
    value = everything()
    source, kept, hidden = (os.path.join(folder, name) for name in ("s.pickle", "k.json", "h.json"))
    with open(source, "wb") as out:
        pickle.dump(value, out)
    run(tarn, "trim", source, kept)
    run(tarn, "trim", "--anonymize", source, hidden)
    with open(kept, encoding="utf-8") as file:
        good = check("trim keeps every key", as_json(value), json.load(file))
    with open(hidden, encoding="utf-8") as file:
        text = file.read()
    for word in ("deep", "producer", "numa_node", "annotation_id", "last_stack", "column"):
        if word in text:
            print(f"FAIL trim --anonymize passes {word} on")
            good = False
    return good


def main(tarn):
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (("every key", everything), ("long and deep", many_items),
                           ("shared", shared)):  # fmt: skip
            for protocol in (2, 4, 5):
                value = make()
                want = copy.deepcopy(value)
                results.append(check(f"{name}, pickle {protocol} to pickle", want,
                                     convert(tarn, folder, value, protocol, ["pickle"])))
                results.append(check(f"{name}, pickle {protocol} to pickle to pickle", want,
                                     convert(tarn, folder, value, protocol, ["pickle", "pickle"])))
            results.append(check(f"{name}, to JSON to pickle to JSON", as_json(make()),
                                 convert(tarn, folder, make(), 4, ["json", "pickle", "json"])))
        results.append(check_trim(tarn, folder))
    passed = sum(results)
    print(f"{passed} passed, {len(results) - passed} failed, 0 skipped")
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
