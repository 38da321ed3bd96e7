# SPDX-License-Identifier: MIT
"""tarn.torch through the setters of torch's pluggable allocator, and what does not depend on the
way of installing, on a simulated device."""

import gzip
import os
import pickle
import tempfile
import unittest

from torch_process import HERE, Case, environment, run

DATA = os.path.join(HERE, "..", "data", "snapshots")


@unittest.skipUnless(os.environ.get("STANDIN_PLUGGABLE"), "no C++ compiler made the stand-in")
class Fallback(Case):
    settings = {"TARN_TORCH_FALLBACK": "1"}

    def test_install_and_counters(self):
        self.passes("""
            from torch.cuda import memory_allocated # a name that is imported before
            tarn.torch.install()
            tarn.torch.install() # again is fine
            assert tarn.torch.is_installed() and tarn.torch.kind() == "fallback"
            assert tarn.torch.history_usage() == {}
            assert tarn.torch.page_stats() == {} and tarn.torch.trim(0) == 0
            assert torch.cuda.memory_stats() == {}
            a = torch.Memory(5 * MIB)
            assert memory_allocated() == 5 * MIB
            assert torch.cuda.memory_allocated(1) == 0
            assert torch.cuda.memory_stats(1)["max_split_size"] == -1
            assert torch.cuda.memory_stats()["reserved_bytes.all.current"] == 20 * MIB
            a.record_stream(9)
            del a
            assert memory_allocated() == 0 and torch.cuda.max_memory_allocated() == 5 * MIB
            assert tarn.torch.page_stats()[0]["created"] == 0
            assert tarn.torch.trim(20 * MIB) == 20 * MIB
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.reset_accumulated_memory_stats()
            torch.cuda.reset_peak_memory_stats(1)
            torch.cuda.reset_accumulated_memory_stats(1)
            assert torch.cuda.max_memory_allocated() == 0
            assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
            torch.cuda.empty_cache()
            assert torch.cuda.memory_stats()["reserved_bytes.all.current"] == 0
            assert torch.cuda.get_allocator_backend() == "pluggable"
            # what is missing says so in torch's words
            text = fails(RuntimeError, torch._C._cuda_getCheckpointState)
            assert "does not yet support getCheckpointState" in text
        """)

    def test_pools_are_counted_for_the_torch_that_does(self):
        script = """
            tarn.torch.install()
            a = torch.Memory(MIB)
            counted = "reserved_bytes_by_private_pools"
            assert (counted in torch.cuda.memory_stats_as_nested_dict(1)) == {known}
            pool = torch.cuda.MemPool()
            torch._C._cuda_beginAllocateCurrentThreadToPool(0, pool.id)
            b = torch.Memory(5 * MIB)
            torch._C._cuda_endAllocateToPool(0, pool.id)
            key = counted + ".{{}}_{{}}.large_pool.current".format(*pool.id)
            assert torch.cuda.memory_stats().get(key) == ({known} and 20 * MIB or None)
        """
        self.passes(script.format(known=False), STANDIN_TORCH_VERSION="2.13.0")
        self.passes(script.format(known=True), STANDIN_TORCH_VERSION="2.14.0+cu130")

    def test_running_out_and_going_on(self):
        self.passes("""
            tarn.torch.install()
            kept = torch.Memory(600 * MIB)
            text = fails(RuntimeError, torch.Memory, 500 * MIB)
            assert text.startswith("CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0"), text
            del kept
            torch.Memory(500 * MIB)
            assert torch.cuda.memory_stats()["num_ooms"] == 1
            text = fails(tarn.Error, tarn.torch.dump_on_oom, "oom.pickle")
            assert "no observers" in text and tarn.torch.oom_dump_path() is None
            assert tarn.torch.last_error() is None
        """)

    def test_fractions(self):
        self.passes("""
            tarn.torch.install()
            assert torch.cuda.get_per_process_memory_fraction() == 1.0
            torch.cuda.set_per_process_memory_fraction(0.5)
            assert torch.cuda.get_per_process_memory_fraction() == 0.5
            text = fails(RuntimeError, torch.Memory, 600 * MIB)
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
            assert torch._C.settings == ["expandable_segments:False"] # torch gets it as well
            assert not torch.cuda.memory._snapshot()["allocator_settings"]["expandable_segments"]
            text = fails(ValueError, torch._C._accelerator_setAllocatorSettings, "nonsense:1")
            assert "nonsense" in text and len(torch._C.settings) == 1

            def refuse(_settings):
                raise ValueError("torch does not know it")

            tarn.torch._routes._originals["_accelerator_setAllocatorSettings"] = refuse
            fails(ValueError, torch._C._accelerator_setAllocatorSettings, "max_split_size_mb:80")
            assert tarn.torch._devices.config().max_split_size != 80 * MIB
            """,
            PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
        )

    def test_a_wrong_setting_changes_nothing(self):
        self.passes(
            """
            text = fails(tarn.Error, tarn.torch.install)
            assert "nonsense" in text, text
            assert not tarn.torch.is_installed() and not torch.cuda.is_initialized()
            assert tarn.torch.kind() is None
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
                assert len(torch.cuda.memory._snapshot()["device_traces"]) == 2 # none is open yet
                a = torch.Memory(3 * MIB)
                b = torch.Memory(100, stream=7)
                pool = torch.cuda.MemPool()
                torch._C._cuda_beginAllocateCurrentThreadToPool(0, pool.id)
                c = torch.Memory(3 * MIB)
                torch._C._cuda_endAllocateToPool(0, pool.id)
                assert len(torch.cuda.memory_snapshot()) == 3
                only = torch.cuda.memory_snapshot(pool.id)
                assert [s["segment_pool_id"] for s in only] == [pool.id]
                assert len(torch.cuda.memory_snapshot((0, 0))) == 3
                torch._C._cuda_releasePool(0, pool.id)
                torch.cuda.memory._dump_snapshot({path!r})
                torch.cuda.memory._dump_snapshot({path!r} + ".json")
            """)
            with open(path, "rb") as file:
                ours = pickle.load(file)
            with open(path + ".json", encoding="utf-8") as file:
                self.assertTrue(file.read().startswith("{"))
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
                del a
                os._exit(0 if "fork" in text else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            torch.Memory(MIB)
            assert torch.cuda.memory_allocated() == MIB
        """)

    def program(self, arguments, cwd=None, **more):
        merged = environment(self.standin, **{**self.settings, **more})
        return run(["-m", "tarn.torch", *arguments], merged, cwd)

    def test_the_program_of_python_m(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program.py")
            with open(program, "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            for more, wanted in (
                (["x", "-v"], f"fallback {folder} ['{program}', 'x', '-v'] __main__ fallback\n"),
                (["x"], f"None {folder} ['{program}', 'x'] __main__ None\n"),
            ):
                off = {"TARN_TORCH": "0"} if wanted.startswith("None") else {}
                done = self.program([program, *more], **off)
                self.assertEqual(done.stdout, wanted, done.stderr)
                self.assertEqual(done.stderr, "")
            done = self.program(["-m", "program", "x"], cwd=folder)
            self.assertIn("['" + program + "', 'x'] __main__", done.stdout, done.stderr)
        for wrong in ([], ["-m"]):
            done = self.program(wrong)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: python -m tarn.torch", done.stdout)


PROGRAM = """
import multiprocessing, sys, tarn.torch
class Kept: # as a pickle finds it in the child
    pass
def work(queue, kept):
    queue.put(tarn.torch.kind())
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue, Kept()))
    child.start()
    print(tarn.torch.kind(), sys.path[0], sys.argv, __name__, queue.get(timeout=60))
    child.join()
"""


class MemPool(Case):
    def test_a_pool_of_torchs_own_allocator(self):
        self.passes("""
            device = tarn.Device("sim:64MiB")
            tarn.torch._devices.use(0, device.handle, tarn.torch._devices.mempools())
            pool = tarn.torch.mempool(no_split=True)
            assert pool.options == (False, True) and not tarn.torch.is_installed()
            assert tarn.torch.last_error() is None
            ptr = pool.segment(20 * MIB)
            assert pool.segment(60 * MIB) is None
            assert tarn.torch.last_error().startswith("CUDA out of memory.")
            pool.give_back(ptr, 20 * MIB)
            assert device.memory_info() == (64 * MIB, 64 * MIB)
            assert torch.cuda.get_allocator_backend() == "native"
        """)

    def test_no_pool_beside_an_installed_allocator(self):
        self.passes(
            """
            tarn.torch.install()
            assert "as it is" in fails(tarn.Error, tarn.torch.mempool)
            """,
            TARN_TORCH_FALLBACK="1",
        )


class Sleep(Case):
    def test_tagged_memory_sleeps(self):
        self.passes(
            """
            tarn.torch.install("expandable_segments:True")
            with tarn.torch.tag("weights"):
                a = torch.Memory(50 * MIB)
            with tarn.torch.tag("weights"):
                b = torch.Memory(3 * MIB)
            c = torch.Memory(70 * MIB)
            def reserved():
                return torch._C._cuda_memoryStats(0)["reserved_bytes"]["all"]["current"]
            before = reserved()
            assert not tarn.torch.is_asleep("weights")
            tarn.torch.sleep("weights", discard=True)
            assert tarn.torch.is_asleep("weights")
            assert reserved() == before - 60 * MIB
            assert torch.cuda.memory_allocated() == 123 * MIB
            assert tarn.torch.sleep_stats()[0]["bytes"] == 60 * MIB
            with tarn.torch.tag("weights"):
                assert "asleep" in fails(RuntimeError, torch.Memory, MIB)
            del b
            tarn.torch.wake("weights")
            assert reserved() == before
            assert "cache" in fails(tarn.Error, tarn.torch.sleep, "cache")
            """,
            TARN_TORCH_FALLBACK="1",
        )


class Refusals(Case):
    """Why there is no class, where there is none: in the warning with which the fallback comes."""

    def warned(self, **more):
        done = self.done(
            """
            tarn.torch.install()
            assert tarn.torch.kind() == "fallback"
            torch.Memory(MIB)
            """,
            **more,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tarn's allocator class is not available for torch 2.11", done.stderr)
        self.assertIn("can do less (docs/pytorch.md)", done.stderr)
        return done.stderr

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_no_headers(self):
        self.assertIn("this torch has no headers in", self.warned(TARN_CACHE_DIR=self.folder))

    def test_no_compiler(self):
        self.passes(
            """
            from tarn.torch import _class
            text = fails(tarn.Error, _class._compiler)
            assert "there is no C++ compiler: install one, or set CXX" in text, text
            """,
            PATH=self.folder,
            CXX="",
        )

    def headers(self, package, *names):
        """Empty headers of CUDA in that folder."""
        for name in names:
            path = os.path.join(self.folder, package, "include", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8"):
                pass
        return os.path.join(self.folder, package)

    def test_cuda_headers_are_complete_or_not_used(self):
        found = """
            import os
            from tarn.torch import _class
            torch.__file__ = os.path.join(os.environ["SITE"], "torch", "__init__.py")
            real = os.path.isfile # nothing outside the test's folder
            os.path.isfile = lambda path: path.startswith(os.environ["SITE"]) and real(path)
            print(_class._cuda_include())
        """
        names = ("cuda_runtime.h", "cuda_runtime_api.h", "crt/host_config.h")
        self.headers("nvidia/cu13", *names[:2])  # the package of crt is missing
        toolkit = self.headers("toolkit", *names)
        more = {"SITE": self.folder, "CUDA_HOME": toolkit, "CUDA_PATH": ""}
        self.assertEqual(self.passes(found, **more).strip(), toolkit + "/include")
        more["CUDA_HOME"] = self.folder + "/nothing"
        text = self.done(found, **more).stderr
        self.assertIn("there are no CUDA headers (cuda_runtime.h, ", text)
        beside = self.headers("nvidia/cu13", *names)
        self.assertEqual(self.passes(found, **more).strip(), beside + "/include")

    def test_a_cache_that_others_can_write(self):
        shared = os.path.join(self.folder, "shared")
        os.mkdir(shared)
        os.chmod(shared, 0o777)
        self.passes(
            """
            import os
            from tarn.torch import _class
            folder = os.path.dirname(_class._cached_path())
            os.mkdir(folder)
            os.chmod(folder, 0o777)
            """,
            TARN_CACHE_DIR=shared,
        )
        self.assertIn("can be written by others", self.warned(TARN_CACHE_DIR=shared))

    def test_a_library_of_another_version(self):
        """Found beside the others by its name, and then refused, because it lacks a function."""
        self.passes(
            """
            import os, warnings
            from tarn import _ffi
            from tarn.torch import _class
            for name in ("libtarn.so.0", "libtarn-tools.so.0", "libtarn_torch.so"):
                os.symlink(os.path.join(os.environ["BUILT"], name),
                           os.path.join(os.environ["TARN_LIBRARY_DIR"], name))
            made = os.path.join(os.environ["TARN_LIBRARY_DIR"], _class.library_name())
            os.symlink(os.path.join(os.environ["BUILT"], "libtarn_torch.so"), made)
            assert os.path.realpath(made) == _class.find(), _class.find()
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                tarn.torch.install()
            assert "has no tarn_torch_install" in str(seen[0].message), seen
            """,
            BUILT=os.path.abspath(os.environ["TARN_LIBRARY_DIR"]),
            TARN_LIBRARY_DIR=self.folder,
        )

    def test_without_the_library(self):
        self.passes(
            """
            text = fails(ImportError, tarn.version)
            assert "libtarn-tools.so.0 cannot be loaded" in text and "make build" in text
            """,
            TARN_LIBRARY_DIR=self.folder,
            LD_LIBRARY_PATH="",
        )
