# SPDX-License-Identifier: MIT
"""tarn.torch with torch's allocator class, which the package compiles against torch's own headers;
torch's libraries are a stand-in."""

import glob
import json
import os
import re
import shutil
import tempfile
import unittest

from torch_process import HERE, Case

INCLUDE = os.environ.get("STANDIN_TORCH_INCLUDE", "")
STUB = os.environ.get("STANDIN_STUB_DIR", "")


def version_of(include):
    """"2.11.0" of the headers."""
    api = "torch/csrc/api/include"
    for name in ("torch/headeronly/version.h", "torch/version.h", f"{api}/torch/version.h"):
        path = os.path.join(include, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            parts = ("MAJOR", "MINOR", "PATCH")
            return ".".join(re.search(rf"TORCH_VERSION_{p} (\d+)", text).group(1) for p in parts)
    return None


@unittest.skipUnless(STUB, "there are no headers of torch and CUDA")
class Class(Case):
    @classmethod
    def setUpClass(cls):
        """A folder like that of an installed torch: its modules, headers and libraries."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.standin = os.path.join(folder.name, "site")
        cls.cache = os.path.join(folder.name, "cache")
        shutil.copytree(os.path.join(HERE, "standin"), cls.standin)
        os.symlink(INCLUDE, os.path.join(cls.standin, "torch", "include"))
        os.symlink(STUB, os.path.join(cls.standin, "torch", "lib"))
        os.mkdir(os.path.join(folder.name, "cuda"))
        os.symlink(
            os.environ["STANDIN_CUDA_INCLUDE"], os.path.join(folder.name, "cuda", "include")
        )
        cls.settings = {
            "CUDA_HOME": os.path.join(folder.name, "cuda"),
            "STANDIN_STUB": os.path.join(STUB, "libc10_cuda.so"),
            "STANDIN_TORCH_VERSION": version_of(INCLUDE) + "+cu130",
            "TARN_CACHE_DIR": cls.cache,
        }

    def test_install(self):
        self.passes("""
            tarn.torch.install()
            tarn.torch.install() # again is fine
            assert tarn.torch.kind() == "class" and tarn.torch.is_installed()
            a = torch.Memory(5 * MIB)
            assert torch.cuda.memory_allocated() == 5 * MIB
            text = fails(torch.OutOfMemoryError, torch.Memory, 2000 * MIB)
            assert text.startswith("CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0"), text
            del a
            assert torch.cuda.memory_allocated() == 0
            assert tarn.torch.last_error() is None
            assert tarn.torch.history_usage() == {}
            assert torch.cuda.get_allocator_backend() == "native"
            assert "as it is" in fails(tarn.Error, tarn.torch.mempool)
        """)

    def test_it_is_compiled_once(self):
        script = "print(tarn.torch.build())"
        path = self.passes(script).strip()
        before = os.stat(path)
        self.assertTrue(path.startswith(self.cache), path)
        self.assertEqual(self.passes(script, PATH="").strip(), path)
        self.assertEqual(os.stat(path).st_mtime_ns, before.st_mtime_ns)
        self.assertEqual(len(glob.glob(os.path.join(self.cache, "*", "*.so"))), 1)

    def test_a_torch_of_another_version(self):
        """The headers decide: what was compiled for one version is refused by another."""
        done = self.done(
            """
            import warnings
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                try:
                    tarn.torch.install()
                except tarn.Error as error:
                    print(error)
            print(*(warning.message for warning in seen))
            """,
            STANDIN_TORCH_VERSION="2.99.0",
            TARN_CACHE_DIR=os.path.join(self.folder, "other"),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "compiled for torch 2.*, and torch 2.99.0 is running")

    def test_what_cannot_be_compiled(self):
        done = self.done(
            "tarn.torch.install()",
            CXX="c++ -Dallocator=",
            TARN_CACHE_DIR=os.path.join(self.folder, "broken"),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("c++ could not compile it: ", done.stderr)
        self.assertIn("using torch's pluggable allocator", done.stderr)

    def test_settings(self):
        self.passes(
            """
            tarn.torch.install("max_split_size_mb:40")
            config = tarn.torch._devices.config()
            assert config.max_split_size == 40 * MIB and config.expandable_segments
            torch._C._accelerator_setAllocatorSettings("expandable_segments:False")
            assert torch._C.settings == ["expandable_segments:False"] # torch gets it as well
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

    def test_a_snapshot_when_memory_runs_out(self):
        with tempfile.TemporaryDirectory() as folder:
            self.passes(
                f"""
                import os
                tarn.torch.install()
                path = tarn.torch.oom_dump_path()
                assert path == {folder!r} + f"/oom-3-{{os.getpid()}}.json", path
                fails(torch.OutOfMemoryError, torch.Memory, 2000 * MIB)
                os.rename(path, {folder!r} + "/first.json")
                tarn.torch.dump_on_oom(None)
                assert tarn.torch.oom_dump_path() is None
                fails(torch.OutOfMemoryError, torch.Memory, 2000 * MIB)
                assert os.listdir({folder!r}) == ["first.json"]
                fails(tarn.Error, tarn.torch.dump_on_oom, "%q")
                """,
                RANK="3",
                TARN_DUMP_ON_OOM=os.path.join(folder, "oom-%r-%p.json"),
            )
            with open(os.path.join(folder, "first.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["device_traces"], [[], []])
        self.passes(
            """
            tarn.torch.install()
            text = fails(tarn.Error, tarn.torch.dump_on_oom, "x.pickle")
            assert text.startswith("backend:cudaMallocAsync has no observers"), text
            """,
            PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync",
        )
        done = self.done("""
            tarn.torch.install()
            tarn.torch.dump_on_oom("/no/such/folder/x.pickle")
            fails(torch.OutOfMemoryError, torch.Memory, 2000 * MIB) # and no other exception
        """)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no snapshot was written to /no/such/folder/x.pickle", done.stderr)

    def test_a_wrong_path_is_named_at_once(self):
        self.passes(
            """
            text = fails(tarn.Error, tarn.torch.install)
            assert "only %p (process), %r (rank) and %% may follow" in text, text
            assert not tarn.torch.is_installed()
            """,
            TARN_DUMP_ON_OOM="oom-%d.pickle",
        )

    def test_dumps_are_pickles_or_json(self):
        with tempfile.TemporaryDirectory() as folder:
            self.passes(f"""
                import pathlib, pickle
                tarn.torch.install()
                dump = torch.cuda.memory._dump_snapshot
                dump({folder!r} + "/a.pickle")
                dump(filename=pathlib.Path({folder!r}) / "a.json")
                dump({folder!r} + "/a.pickle.gz")
                import gzip
                with gzip.open({folder!r} + "/a.pickle.gz") as file:
                    assert pickle.load(file)["segments"] == []
                with open({folder!r} + "/a.pickle", "rb") as file:
                    assert pickle.load(file)["segments"] == []
                text = fails(tarn.Error, dump, {folder!r} + "/none/dump.json")
                assert "none/dump.json" in text, text
            """)
            with open(os.path.join(folder, "a.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["segments"], [])

    def test_memory_outlives_the_interpreter(self):
        self.passes("""
            import builtins, sys
            tarn.torch.install()
            builtins.kept = torch.Memory(MIB) # freed when modules are torn down
            sys.modules["kept"] = torch.Memory(MIB)
        """)
