# SPDX-License-Identifier: MIT
"""History and snapshots of torch.cuda.memory on tarn, behind the stand-in for torch."""

import json
import os
import pickle
import tempfile
import unittest

from test_torch import run

TOOLS = """
import ctypes, json, pickle, sys, threading

record = torch.cuda.memory._record_memory_history

def trace(device=0):
    return torch.cuda.memory._snapshot()["device_traces"][device]

def actions(device=0):
    return [entry["action"] for entry in trace(device)]

def names(frames):
    return [frame["name"] for frame in frames]

class SimOptions(ctypes.Structure): # struct tarn_sim_options, as far as it is set
    _fields_ = [("struct_size", ctypes.c_uint32), ("ordinal", ctypes.c_int),
                ("capacity", ctypes.c_uint64), ("base", ctypes.c_uint64),
                ("backed", ctypes.c_bool), ("manual_events", ctypes.c_bool)]

def open_second(): # a simulated device with number 1
    options = SimOptions(ctypes.sizeof(SimOptions), 1, 1024 * MIB, 0x710000000000)
    device, error = ctypes.c_void_p(), tarn._ffi.TarnError()
    opened = tarn._ffi.lib.cdll.tarn_sim_open
    assert opened(ctypes.byref(options), ctypes.byref(device), ctypes.byref(error)) == 0
    return device

def allocate(size=3 * MIB, device=0):
    return torch.Memory(size, device=device)
"""


@unittest.skipUnless(os.environ.get("TARN_TORCH_STANDIN"), "no C++ compiler made the stand-in")
class History(unittest.TestCase):
    def passes(self, script, **environment):
        done = run(TOOLS + script, **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_what_is_recorded_at_each_level(self):
        self.passes("""
tarn.torch.install()
def shown():
    a = allocate()
    del a
    entries = {entry["action"]: "frames" in entry for entry in trace()[-3:]}
    b = allocate()
    block = torch.cuda.memory_snapshot()[0]["blocks"][0]
    segment = bool(torch.cuda.memory_snapshot()[0]["frames"])
    del b
    torch.cuda.empty_cache()
    return entries["alloc"], entries["free_requested"], bool(block["frames"]), segment
for context, expected in ((None, (False, False, False, False)),
                          ("state", (False, False, True, True)),
                          ("alloc", (True, True, True, True)),
                          ("all", (True, True, True, True))):
    record(context=context, stacks="python", clear_history=True)
    assert torch._C._cuda_isHistoryEnabled()
    assert shown() == expected, (context, shown())
def release(kept):
    kept.clear()
for context, expected in (("alloc", "allocate"), ("all", "release")):
    record(context=context, stacks="python")
    release([allocate()])
    entry = trace()[-2]
    assert entry["action"] == "free_requested" and expected in names(entry["frames"]), entry
        """)

    def test_frames_are_the_callers(self):
        self.passes("""
tarn.torch.install()
record(stacks="python")
def outer():
    return inner()
def inner():
    return allocate()
kept = outer()
entry = trace()[-1]
assert names(entry["frames"])[-4:] == ["allocate", "inner", "outer", "<module>"], entry
frame = entry["frames"][-3]
assert frame["filename"] == "<string>"
assert frame["line"] == inner.__code__.co_firstlineno + 1, frame
segment, = torch.cuda.memory_snapshot()
assert segment["frames"] == segment["blocks"][0]["frames"] == entry["frames"]
record(stacks="all")
kept = outer()
found = names([entry for entry in trace() if entry["action"] == "alloc"][-1]["frames"])
assert "tarn_torch_alloc" in found and found[-4:] == ["allocate", "inner", "outer", "<module>"]
assert found.index("tarn_torch_alloc") < found.index("allocate")
traceback = tarn.torch._allocation_traceback
assert names(traceback(kept.ptr)) == found and traceback(5) is None
        """)

    def test_signatures_of_all_versions(self):
        self.passes("""
tarn.torch.install()
raw = torch._C._cuda_record_memory_history
legacy = torch._C._cuda_record_memory_history_legacy
for arguments in (("all", "all", "python", 5), ("all", "all", "python", 5, True, False, True),
                  ("all", "all", "python", 5, False, False, False, ["oom"]),
                  ("all", "all", "python", 5, False, False, False, [], False, True)):
    raw(*arguments)
    kept = [allocate(512) for _ in range(9)]
    assert tarn.torch.history_usage()[0]["max_entries"] == 5 and len(trace()) == 5
for arguments in ((True, True, 5, True, False), (True, True, 5, True, True, True, False, False),
                  (True, True, 5, True, False, False, False, False, []),
                  (True, True, 5, True, False, False, False, False, [], False, True)):
    legacy(*arguments)
    kept = [allocate(512) for _ in range(9)]
    assert len(trace()) == 5 and "frames" in trace()[0]
legacy(True, False, 7, False, False)
kept = [allocate(512) for _ in range(9)]
assert len(trace()) == 7 and "frames" not in trace()[-1]
record(True)
kept = [allocate(512) for _ in range(9)]
assert len(trace()) == 1 and "frames" not in trace()[0]
assert any(block["frames"] for block in torch.cuda.memory_snapshot()[0]["blocks"])
record("state")
assert tarn.torch.history_usage()[0]["max_entries"] == 1
record(False)
assert trace() == [] and not torch._C._cuda_isHistoryEnabled()
raw("all", "all", "python", 5, False, False, False, [], False, False) # nothing of CUDA
assert not torch._C._cuda_isHistoryEnabled()
        """)

    def test_marks_of_torch(self):
        self.passes("""
tarn.torch.install()
kept = allocate()
record(compile_context=True, global_record_annotations=True)
assert torch._C.marks == [("all", "all", "python", sys.maxsize, False, True, True, [])]
library = torch._C._lib
assert library.standin_annotate(b"step 1", b"START", b"a field") == 0
assert library.standin_push_compile_context(b"Torch-Compiled Region: 0/0") == 0
inside = allocate()
assert library.standin_pop_compile_context() == 0
assert library.standin_annotate(b"step 1", b"END", None) == 0
outside = allocate()
snapshot = torch.cuda.memory._snapshot()
start, end = snapshot["external_annotations"]
assert abs(start.pop("time_us") - end.pop("time_us")) < 10**6
assert start == {"stage": "START", "name": "step 1", "device": 0, "more": "a field"}, start
assert end == {"stage": "END", "name": "step 1", "device": 0}, end
contexts = [e["compile_context"] for e in snapshot["device_traces"][0] if e["action"] == "alloc"]
assert contexts == ["Torch-Compiled Region: 0/0", "N/A"], contexts
for depth in range(20): # deeper than is kept: those within have the innermost that was
    assert library.standin_push_compile_context(b"%d" % depth * (1 + 300 * (depth == 3))) == 0
kept = allocate()
for depth in range(20):
    assert library.standin_pop_compile_context() == 0
assert library.standin_set_user_metadata(b"by torch") == 0
again = allocate()
contexts = [(e["compile_context"], e["user_metadata"]) for e in trace() if e["action"] == "alloc"]
assert contexts[-2:] == [("15", ""), ("N/A", "by torch")], contexts
for _ in range(5000):
    library.standin_annotate(b"many", b"START", None)
usage = tarn.torch.history_usage()[0]
assert usage["annotations"] == 4096 and usage["annotations_overwritten"] == 906
record(None)
assert torch._C.marks[-1][:3] == (None, "all", "python"), torch._C.marks
assert library.standin_annotate(b"off", b"START", None) == 0
assert torch.cuda.memory._snapshot()["external_annotations"] == []
record(True, True, 9)
assert torch._C.marks[-1] == (True, True, 9, False, False, False, False, False, [])
        """)

    def test_wrong_arguments(self):
        self.passes("""
import warnings
tarn.torch.install()
text = fails(RuntimeError, record, "some")
assert text == "expected state to be 'state', 'all', or None"
text = fails(RuntimeError, record, "all", "some")
assert text == "expected context to be 'state', 'alloc', 'all', or None"
text = fails(RuntimeError, record, "all", "all", "some")
assert text == "expected stacks to be 'python', or 'all'"
assert "1 or more" in fails(ValueError, record, "all", "all", "all", 0)
raw = torch._C._cuda_record_memory_history
many = ("all", "all", "all", 5, False, False, False, [], True)
assert "record_pinned_host_memory" in fails(NotImplementedError, raw, *many)
assert not torch._C._cuda_isHistoryEnabled()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    record(skip_actions=["segment_alloc", "nonsense"])
assert "'nonsense'" in str(seen[0].message), seen
# what is not routed says so in torch's words
assert "getCheckpointState" in fails(RuntimeError, torch._C._cuda_getCheckpointState)
        """)

    def test_off_at_once_and_bounded(self):
        self.passes("""
tarn.torch.install()
record(max_entries=10, stacks="python")
kept = [allocate(512) for _ in range(20)]
usage = tarn.torch.history_usage()[0]
assert usage["entries"] == 10 and usage["entries_overwritten"] == 11
assert usage["python_frames"] > 0 and usage["python_stacks_dropped"] == 0
record(None)
assert trace() == [] and tarn.torch.history_usage()[0]["entries"] == 0
assert torch.cuda.memory_snapshot()[0]["blocks"][0]["frames"] # of live blocks they stay
kept.clear()
assert trace() == []
record(skip_actions=["free_requested", "free_completed"])
kept = allocate()
kept = None
assert "alloc" in actions() and "free_requested" not in actions()
assert tarn.torch.history_usage()[0]["entries_skipped"] == 2
record()
assert trace(), "kept when recording goes on"
record(clear_history=True)
assert actions() == []
        """)

    def test_code_objects_are_given_back(self):
        self.passes("""
tarn.torch.install()
namespace = {"allocate": allocate}
exec("def passing():\\n    return allocate()", namespace)
code = namespace["passing"].__code__
before = sys.getrefcount(code)
record(stacks="python")
kept = [namespace["passing"]() for _ in range(3)]
assert sys.getrefcount(code) == before + 1, sys.getrefcount(code) - before
kept.clear()
torch.cuda.empty_cache() # segments have stacks as well
record(None)
record(stacks="python") # the next stack gives back what is no longer needed
kept = allocate()
assert sys.getrefcount(code) == before, sys.getrefcount(code) - before
        """)

    def test_frames_that_find_no_room(self):
        self.passes("""
tarn.torch.install()
record(stacks="python")
wanted = tarn._ffi.Recording(struct_size=ctypes.sizeof(tarn._ffi.Recording), enabled=True,
                             level=3, max_entries=100, max_python_frames=3)
tarn._ffi.call(tarn._ffi.plug.tarn_torch_record_history, ctypes.byref(wanted))
kept = allocate()
entry = trace()[-1]
assert entry["action"] == "alloc" and "frames" not in entry
usage = tarn.torch.history_usage()[0]
assert usage["python_stacks_dropped"] > 0 and usage["python_frames"] <= 3, usage
record(stacks="python")
again = allocate()
assert "allocate" in names(trace()[-1]["frames"])
        """)

    def test_deep_stacks_keep_their_innermost_frames(self):
        self.passes("""
tarn.torch.install()
record(stacks="python")
def deep(n):
    return allocate() if n == 0 else deep(n - 1)
kept = deep(400)
found = names(trace()[-1]["frames"])
assert len(found) == 256 and set(found[3:]) == {"deep"}, found
        """)

    def test_threads_of_any_kind(self):
        self.passes("""
tarn.torch.install()
record(stacks="python")
kept = []
def on_a_thread():
    kept.append(allocate())
thread = threading.Thread(target=on_a_thread)
thread.start()
thread.join()
assert "on_a_thread" in names(trace()[-1]["frames"])

def holding_the_lock(): # ctypes does not give the interpreter's lock up for this one
    library = ctypes.PyDLL(torch._C._lib._name)
    ptr = ctypes.c_void_p()
    assert library.standin_alloc(ctypes.c_size_t(512), 0, None, ctypes.byref(ptr)) == 0
    return ptr
ptr = holding_the_lock()
assert names(trace()[-1]["frames"])[0] == "holding_the_lock"

elsewhere = torch._C._lib.standin_alloc_elsewhere
foreign = ctypes.c_void_p()
assert elsewhere(ctypes.c_size_t(512), ctypes.byref(foreign)) == 0
entry = trace()[-1]
assert entry["action"] == "alloc" and "frames" not in entry
assert torch._C._lib.standin_free_elsewhere(ptr) == 0 # gives the stack up over there
record(None)
kept.clear()
        """)

    def test_threads_that_record_and_dump(self):
        with tempfile.TemporaryDirectory() as folder:
            self.passes(f"""
tarn.torch.install()
record(stacks="python", max_entries=200)
def work(number):
    for step in range(150):
        kept = [torch.Memory(4096, stream=number) for _ in range(4)]
        if step % 50 == number:
            torch.cuda.memory._dump_snapshot({folder!r} + f"/{{number}}.pickle")
            torch.cuda.memory._snapshot()
        if number == 3 and step % 20 == 0:
            record("state" if step % 40 else "all", stacks="python", max_entries=200)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert torch.cuda.memory_allocated() == 0
            """)
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "rb") as file:
                    self.assertIn("segments", pickle.load(file))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dump.pickle")
            self.passes(f"""
import pathlib
tarn.torch.install()
dump = torch.cuda.memory._dump_snapshot
dump({path!r} + ".empty") # before any device is in use
record(stacks="python")
kept = [allocate(), allocate(100, device=0)]
torch.cuda.memory._set_memory_metadata("step 7")
more = allocate()
torch.cuda.memory._set_memory_metadata("")
snapshot = torch.cuda.memory._snapshot()
dump({path!r})
dump(filename=pathlib.Path({path!r} + ".json"))
loaded = pickle.load(open({path!r}, "rb"))
marker = loaded["device_traces"][0].pop()
assert marker["action"] == "snapshot" and marker["addr"] == 0
for a, b in zip(loaded["device_traces"][0], snapshot["device_traces"][0]):
    assert abs(a.pop("time_us") - b.pop("time_us")) < 10000
assert loaded == snapshot, (loaded, snapshot)
assert loaded["device_traces"][0][-1]["user_metadata"] == "step 7"
assert loaded["device_traces"][0][0]["compile_context"] == "N/A"
first, second = loaded["segments"][0]["blocks"][0], loaded["segments"][0]
assert first["frames"] is second["frames"] # shared, as PyTorch's
text = fails(tarn.Error, dump, {folder!r} + "/none/dump.pickle")
assert "none/dump.pickle" in text, text
            """)
            with open(path + ".json", encoding="utf-8") as file:
                self.assertEqual(len(json.load(file)["device_traces"]), 2)
            with open(path + ".empty", "rb") as file:
                self.assertEqual(pickle.load(file)["device_traces"], [[], []])

    def test_two_devices(self):
        self.passes("""
tarn.torch.install()
second = open_second()
tarn._ffi.call(tarn._ffi.plug.tarn_torch_use_device, 1, second)
record(stacks="python", max_entries=7)
a = allocate()
b = allocate(device=1)
snapshot = torch.cuda.memory._snapshot()
assert [len(t) for t in snapshot["device_traces"]] == [2, 2]
assert [s["device"] for s in snapshot["segments"]] == [0, 1]
assert all("allocate" in names(t[-1]["frames"]) for t in snapshot["device_traces"])
assert torch.cuda.memory_snapshot((0, 0), False)[1]["device"] == 1
usage = tarn.torch.history_usage()
assert [usage[i]["max_entries"] for i in (0, 1)] == [7, 7]
        """)

    def test_dumped_by_an_observer(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "oom.pickle")
            self.passes(f"""
tarn.torch.install()
record(stacks="python")
def observer(*_):
    torch.cuda.memory._dump_snapshot({path!r})
torch._C._cuda_attach_out_of_memory_observer(observer)
def greedy():
    return allocate(2048 * MIB)
kept = allocate()
fails(torch.OutOfMemoryError, greedy)
last = pickle.load(open({path!r}, "rb"))["device_traces"][0][-1]
assert last["action"] == "oom" and last["size"] == 2048 * MIB
assert last["device_free"] == 1024 * MIB - 20 * MIB
assert "greedy" in names(last["frames"])
            """)

    def test_host_memory_runs_out(self):
        self.passes("""
tarn.torch.install()
kept = allocate()
fail_nth = tarn._ffi.lib.cdll.tarn_host_fail_nth
failed = 0
for n in range(1, 100):
    fail_nth(ctypes.c_uint64(n))
    try:
        record(stacks="python", max_entries=100 + n)
        fail_nth(ctypes.c_uint64(0))
        break
    except tarn.Error as error:
        assert error.status == "TARN_ERR_HOST_MEMORY"
        assert not torch._C._cuda_isHistoryEnabled()
        failed += 1
assert failed >= 3 and torch._C._cuda_isHistoryEnabled(), failed
kept = allocate()
failed = 0
for n in range(1, 300):
    fail_nth(ctypes.c_uint64(n))
    try:
        found = trace()
        fail_nth(ctypes.c_uint64(0))
        break
    except tarn.Error as error:
        assert error.status == "TARN_ERR_HOST_MEMORY", error.status
        failed += 1
assert failed > 5 and "frames" in found[1]
assert fails(tarn.Error, record, "all", "all", "all", 2**60)
assert not torch._C._cuda_isHistoryEnabled()
        """)

    def test_a_device_that_is_opened_while_recording(self):
        self.passes("""
tarn.torch.install()
record(stacks="python", max_entries=3)
fail_nth = tarn._ffi.lib.cdll.tarn_host_fail_nth
failed = 0
for n in range(1, 100):
    fail_nth(ctypes.c_uint64(n))
    try:
        kept = allocate()
        fail_nth(ctypes.c_uint64(0))
        break
    except RuntimeError:
        failed += 1
assert failed > 3
kept = [allocate(512) for _ in range(9)]
assert len(trace()) == 3
        """)

    def test_the_drivers_pool_has_no_history(self):
        self.passes(
            """
tarn.torch.install()
assert "cudaMallocAsync has no history" in fails(tarn.Error, record)
            """,
            PYTORCH_ALLOC_CONF="backend:cudaMallocAsync",
        )

    def test_memory_outlives_the_interpreter(self):
        self.passes("""
import builtins
tarn.torch.install()
record(stacks="python")
builtins.kept = allocate()
sys.modules["kept"] = allocate()
        """)
