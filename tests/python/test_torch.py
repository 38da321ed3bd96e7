# SPDX-License-Identifier: MIT
"""tarn.torch behind a stand-in for torch, on a simulated device. The allocator of a process cannot
be changed back, so each case is a process."""

import gzip
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "snapshots")
PREAMBLE = """
import torch
import tarn
MIB = 1 << 20

def fails(kind, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call} did not fail")
"""


def run(script, **environment):
    paths = [os.path.join(HERE, "..", "..", "python"), os.path.join(HERE, "standin")]
    merged = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "TARN_TORCH_DEVICE": "sim:1GiB",
        **environment,
    }
    for name in ("TARN_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        if name not in environment:
            merged.pop(name, None)
    return subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(script)],
        env=merged,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@unittest.skipUnless(os.environ.get("TARN_TORCH_STANDIN"), "no C++ compiler made the stand-in")
class Torch(unittest.TestCase):
    def passes(self, script, **environment):
        done = run(script, **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_install_and_counters(self):
        self.passes("""
            from torch.cuda import memory_allocated # a name that is imported before
            tarn.torch.install()
            tarn.torch.install() # again is fine
            assert tarn.torch.is_installed()
            assert torch.cuda.memory_stats() == {}
            a = torch.Memory(5 * MIB)
            assert memory_allocated() == 5 * MIB
            assert torch.cuda.memory_allocated(1) == 0
            assert torch.cuda.memory_stats(1)["max_split_size"] == -1
            assert torch.cuda.memory_stats()["reserved_bytes.all.current"] == 20 * MIB
            del a
            assert memory_allocated() == 0 and torch.cuda.max_memory_allocated() == 5 * MIB
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.reset_accumulated_memory_stats()
            torch.cuda.reset_peak_memory_stats(1)
            torch.cuda.reset_accumulated_memory_stats(1)
            assert torch.cuda.max_memory_allocated() == 0
            assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
            torch.cuda.empty_cache()
            assert torch.cuda.memory_stats()["reserved_bytes.all.current"] == 0
            assert torch.cuda.get_allocator_backend() == "pluggable"
            assert torch._C.cache_info(0) == 1024 * MIB
        """)

    def test_running_out_and_going_on(self):
        self.passes("""
            tarn.torch.install()
            seen = []
            torch._C._cuda_attach_out_of_memory_observer(lambda *numbers: seen.append(numbers))
            torch._C._cuda_attach_out_of_memory_observer(lambda *numbers: seen.append(numbers))
            fails(TypeError, torch._C._cuda_attach_out_of_memory_observer, None)
            kept = torch.Memory(600 * MIB)
            text = fails(torch.OutOfMemoryError, torch.Memory, 500 * MIB)
            assert text.startswith("CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0"), text
            assert seen == [(0, 500 * MIB, 1024 * MIB, 424 * MIB)] * 2, seen
            assert tarn.torch.last_error() == text
            del kept
            torch.Memory(500 * MIB)
            assert torch.cuda.memory_stats()["num_ooms"] == 1
        """)

    def test_an_observer_that_fails_is_not_fatal(self):
        done = run("""
            tarn.torch.install()
            def observer(*_):
                raise ValueError("a broken observer")
            torch._C._cuda_attach_out_of_memory_observer(observer)
            fails(torch.OutOfMemoryError, torch.Memory, 2000 * MIB)
        """)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a broken observer", done.stderr)

    def test_fractions(self):
        self.passes("""
            tarn.torch.install()
            assert torch.cuda.get_per_process_memory_fraction() == 1.0
            torch.cuda.set_per_process_memory_fraction(0.5)
            assert torch.cuda.get_per_process_memory_fraction() == 0.5
            text = fails(torch.OutOfMemoryError, torch.Memory, 600 * MIB)
            assert "512.00 MiB allowed" in text
        """)

    def test_settings(self):
        self.passes(
            """
            tarn.torch.install("max_split_size_mb:40")
            torch.Memory(MIB)
            assert torch.cuda.memory_stats()["max_split_size"] == 40 * MIB
            settings = torch.cuda.memory._snapshot()["allocator_settings"]
            assert settings["expandable_segments"] is True
            assert settings["max_split_size"] == 40 * MIB
            assert settings["roundup_power2_divisions"]["32768"] == 0
            torch._C._accelerator_setAllocatorSettings("expandable_segments:False")
            assert torch._C.settings == ["expandable_segments:False"] # torch is told as well
            assert not torch.cuda.memory._snapshot()["allocator_settings"]["expandable_segments"]
            text = fails(tarn.Error, torch._C._accelerator_setAllocatorSettings, "nonsense:1")
            assert "nonsense" in text and len(torch._C.settings) == 1
            """,
            PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
        )

    def test_a_wrong_setting_changes_nothing(self):
        self.passes(
            """
            text = fails(tarn.Error, tarn.torch.install)
            assert "nonsense" in text, text
            assert not tarn.torch.is_installed() and not torch.cuda.is_initialized()
            assert "support getDeviceStats" in fails(RuntimeError, torch._C._cuda_memoryStats, 0)
            """,
            PYTORCH_ALLOC_CONF="nonsense:1",
        )

    def test_too_late(self):
        self.passes("""
            torch.cuda.init()
            text = fails(tarn.Error, tarn.torch.install)
            assert "must come before CUDA starts" in text
            assert not tarn.torch.is_installed()
            assert "cannot be uninstalled" in fails(tarn.Error, tarn.torch.uninstall)
        """)

    def test_another_allocator_was_first(self):
        self.passes("""
            path = tarn._ffi.find_library("libtarn_torch.so")
            other = torch.cuda.memory.CUDAPluggableAllocator(
                path, "tarn_torch_alloc", "tarn_torch_free")
            torch.cuda.memory.change_current_allocator(other)
            torch._C.init(1)
            text = fails(tarn.Error, tarn.torch.install)
            assert "Can't swap an already initialized allocator" in text, text
            assert not tarn.torch.is_installed()
        """)

    def test_snapshot(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dump.pickle")
            self.passes(f"""
                tarn.torch.install()
                a = torch.Memory(3 * MIB)
                b = torch.Memory(100, stream=7)
                pool = torch.cuda.MemPool()
                torch._C._cuda_beginAllocateCurrentThreadToPool(0, pool.id)
                c = torch.Memory(3 * MIB)
                torch._C._cuda_endAllocateToPool(0, pool.id)
                segments = torch.cuda.memory_snapshot()
                assert len(segments) == 3, segments
                only = torch.cuda.memory_snapshot(pool.id)
                assert [s["segment_pool_id"] for s in only] == [pool.id]
                assert len(torch.cuda.memory_snapshot((0, 0))) == 3
                take = torch._C._cuda_memorySnapshot
                assert fails(TypeError, take, 5) == "Expected tuple or None"
                assert fails(TypeError, take, (1,)) == "Expected tuple of size 2 or 3"
                assert fails(TypeError, take, (1, "x")) == "mempool_id elements must be integers"
                assert fails(TypeError, take, (0, 1, 2)) == "include_traces must be a boolean"
                torch._C._cuda_releasePool(0, pool.id)
                torch.cuda.memory._dump_snapshot({path!r})
            """)
            with open(path, "rb") as file:
                ours = pickle.load(file)
        with gzip.open(os.path.join(DATA, "multistream.pickle.gz")) as file:
            theirs = pickle.load(file)
        self.assertEqual(set(ours), set(theirs))
        self.assertEqual(set(ours["allocator_settings"]), set(theirs["allocator_settings"]))
        self.assertEqual(len(ours["device_traces"]), 2)
        segments = ours["segments"]
        self.assertEqual(set(segments[0]), set(theirs["segments"][0]))
        self.assertEqual(set(segments[0]["blocks"][0]), set(theirs["segments"][0]["blocks"][0]))
        for segment in segments:
            blocks = segment["blocks"]
            self.assertEqual(sum(block["size"] for block in blocks), segment["total_size"])
            self.assertEqual(blocks[0]["address"], segment["address"])
            self.assertEqual([b["state"] for b in blocks], ["active_allocated", "inactive"])
        self.assertEqual([s["segment_type"] for s in segments], ["large", "small", "large"])
        self.assertEqual(segments[1]["stream"], 7)
        self.assertEqual(segments[1]["requested_size"], 100)

    def test_running_out_writes_a_snapshot(self):
        with tempfile.TemporaryDirectory() as folder:
            printed = self.passes(
                """
                import os
                tarn.torch.install()
                torch.cuda.memory._record_memory_history(stacks="python")
                kept = torch.Memory(300 * MIB)
                def too_much():
                    torch.Memory(900 * MIB)
                fails(torch.OutOfMemoryError, too_much)
                print(tarn.torch.oom_dump_path())
                tarn.torch.dump_on_oom(None)
                assert tarn.torch.oom_dump_path() is None
                os.rename(os.path.join(os.environ["FOLDER"], f"oom-3-{os.getpid()}.pickle"),
                          os.path.join(os.environ["FOLDER"], "first.pickle"))
                fails(torch.OutOfMemoryError, too_much)
                assert os.listdir(os.environ["FOLDER"]) == ["first.pickle"]
                """,
                FOLDER=folder,
                RANK="3",
                TARN_DUMP_ON_OOM=os.path.join(folder, "oom-%r-%p.pickle"),
            )
            self.assertRegex(printed, r"/oom-3-\d+\.pickle\n$")
            with open(os.path.join(folder, "first.pickle"), "rb") as file:
                taken = pickle.load(file)
        self.assertEqual([s["total_size"] for s in taken["segments"]], [300 << 20])
        last = taken["device_traces"][0][-1]
        self.assertEqual(last["action"], "oom")
        self.assertIn("too_much", [frame["name"] for frame in last["frames"]])

    def test_a_wrong_path_of_the_environment_is_said_at_once(self):
        self.passes(
            """
            text = fails(tarn.Error, tarn.torch.install)
            assert "only %p (process), %r (rank) and %% may follow" in text, text
            assert not tarn.torch.is_installed()
            """,
            TARN_DUMP_ON_OOM="oom-%d.pickle",
        )

    def test_usage_is_a_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "usage.svg")
            self.passes(f"""
                tarn.torch.install()
                def saved(save, *arguments):
                    save({path!r}, *arguments)
                    with open({path!r}, encoding="utf-8") as file:
                        picture = file.read()
                    assert "<svg" in picture
                    return picture
                by_segment = torch.cuda.memory._save_segment_usage
                by_state = torch.cuda.memory._save_memory_usage
                assert "stream_" not in saved(by_segment)  # nothing is allocated yet
                a = torch.Memory(3 * MIB, stream=9)
                before = torch.cuda.memory._snapshot()
                assert "seg_" in saved(by_segment) and "stream_9" in saved(by_segment)
                assert "seg_" not in saved(by_state) and "stream_9" in saved(by_state)
                del a
                torch.cuda.memory.empty_cache()
                assert "stream_9" not in saved(by_state)
                assert "stream_9" in saved(by_state, before)  # the snapshot that is given
            """)

    def test_a_large_snapshot(self):
        self.passes("""
            tarn.torch.install()
            kept = [torch.Memory(512) for _ in range(3000)]
            segment, = torch.cuda.memory_snapshot()
            assert len(segment["blocks"]) == 3001
        """)

    def test_waiting_blocks_are_pending(self):
        self.passes("""
            import ctypes
            tarn.torch.install()
            device = tarn.torch._kept[0]
            a = torch.Memory(3 * MIB)
            a.record_stream(9)
            assert tarn._ffi.lib.cdll.tarn_sim_block_stream(device.handle, ctypes.c_uint64(9)) == 0
            del a
            segment, = torch.cuda.memory_snapshot()
            assert segment["blocks"][0]["state"] == "active_pending_free"
            assert segment["active_size"] == 3 * MIB and segment["allocated_size"] == 0
        """)

    def test_switching_the_cache_off(self):
        self.passes("""
            import torch
            tarn.torch.install(device=tarn.Device("sim:1GiB"))
            tarn._ffi.call(tarn._ffi.plug.tarn_torch_use_device, 1,
                           tarn.Device("sim:1GiB").handle)
            assert torch._C._cuda_cudaCachingAllocator_is_enabled()
            torch._C._cuda_cudaCachingAllocator_enable(False)
            assert not torch._C._cuda_cudaCachingAllocator_is_enabled()
            a = torch.Memory(3 * MIB)
            assert torch.cuda.memory_allocated() == 0
            del a
            torch._C._cuda_cudaCachingAllocator_enable(True)
            a = torch.Memory(3 * MIB)
            assert torch.cuda.memory_allocated() == 3 * MIB
        """)

    def test_metadata(self):
        self.passes("""
            tarn.torch.install()
            torch._C._cuda_setMemoryMetadata("step 1")
            assert torch._C._cuda_getMemoryMetadata() == "step 1"
            fails(tarn.Error, torch._C._cuda_setMemoryMetadata, "x" * 1000)
            a = torch.Memory(MIB)
            torch._C._cuda_annotateMemory(a.ptr, "a note")
            fails(tarn.Error, torch._C._cuda_annotateMemory, 5, "a note")
        """)

    def test_a_pool_of_torchs(self):
        self.passes("""
            device = tarn.Device("sim:64MiB")
            tarn._ffi.call(tarn._ffi.plug.tarn_torch_use_device, 0, device.handle)
            pool = tarn.torch.mempool(no_split=True)
            assert pool.options == (False, True) and not tarn.torch.is_installed()
            assert tarn.torch.last_error() is None
            ptr = pool.segment(20 * MIB)
            assert pool.segment(60 * MIB) is None
            assert tarn.torch.last_error().startswith("CUDA out of memory.")
            pool.give_back(ptr, 20 * MIB)
            assert device.memory_info() == (64 * MIB, 64 * MIB)
            assert "support getDeviceStats" in fails(RuntimeError, torch._C._cuda_memoryStats, 0)
        """)

    def test_no_pool_beside_an_installed_allocator(self):
        self.passes("""
            tarn.torch.install()
            assert "as it is" in fails(tarn.Error, tarn.torch.mempool)
        """)

    def test_memory_outlives_the_interpreter(self):
        self.passes("""
            import builtins, sys
            tarn.torch.install()
            builtins.kept = torch.Memory(MIB) # freed when modules are torn down
            sys.modules["kept"] = torch.Memory(MIB)
        """)

    def test_a_forked_child(self):
        self.passes("""
            import os
            tarn.torch.install()
            a = torch.Memory(MIB)
            child = os.fork()
            if child == 0:
                text = fails(RuntimeError, torch.Memory, MIB)
                ok = "'spawn'" in text
                text = fails(tarn.Error, torch.cuda.memory_stats)
                del a
                os._exit(0 if ok and "'spawn'" in text else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            torch.Memory(MIB)
            assert torch.cuda.memory_allocated() == MIB
        """)

    def test_threads(self):
        self.passes("""
            import threading
            tarn.torch.install()
            def work(stream):
                for _ in range(300):
                    kept = [torch.Memory(4096, stream=stream) for _ in range(4)]
                    torch.cuda.memory_stats()
                    torch.cuda.memory_snapshot()
            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert torch.cuda.memory_allocated() == 0
        """)

    def test_a_torch_that_cannot_be_told(self):
        done = run(
            """
            import os
            torch._C._lib # loaded; then the plug finds none of it under another name
            text = fails(tarn.Error, tarn.torch.install)
            assert "tarn could not raise torch.OutOfMemoryError in it" in text, text
            assert "_ZTIN3c10" in text or "c105Error" in text or "OutOfMemory" in text, text
            """,
            TARN_TORCH_STANDIN=os.environ["TARN_TORCH_STANDIN_RENAMED"],
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_without_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            self.passes(
                """
                text = fails(ImportError, tarn.version)
                assert "libtarn.so.0 cannot be loaded" in text and "make build" in text
                """,
                TARN_LIBRARY_DIR=folder,
                LD_LIBRARY_PATH="",
            )
