# SPDX-License-Identifier: MIT
"""The classes over a device and an allocator, on simulated devices."""

import json
import os
import pickle
import tempfile
import unittest

import tarn
from tarn import _ffi
from tarn.allocator import flat_stats, stats_dict, summary_text

MIB = 1 << 20
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "snapshots")


def recorded(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return file.read()


class Devices(unittest.TestCase):
    def test_a_device_says_what_it_is(self):
        with tarn.Device("sim:4GiB") as device:
            info = device.info
            self.assertEqual(info["backend"], "sim")
            self.assertEqual(info["total_memory"], 4096 * MIB)
            self.assertEqual(device.memory_info(), (4096 * MIB, 4096 * MIB))

    def test_processes_are_listed(self):
        with tarn.Device("sim:4GiB") as device, tarn.Allocator(device, "") as allocator:
            self.assertEqual(device.list_processes(), "GPU:0\nno processes are running")
            allocator.alloc(3 * MIB)
            self.assertEqual(
                device.list_processes(),
                f"GPU:0\nprocess {os.getpid():>10d} uses {20:>12.3f} MB GPU memory",
            )

    def test_a_wrong_device_is_an_error(self):
        with self.assertRaises(ValueError) as raised:
            tarn.Device("simulated")
        self.assertIsInstance(raised.exception, tarn.InvalidArgumentError)
        self.assertEqual(raised.exception.status, "TARN_ERR_INVALID_ARGUMENT")
        self.assertIn("simulated", str(raised.exception))


class Allocators(unittest.TestCase):
    def setUp(self):
        self.device = tarn.Device("sim:1GiB")
        self.allocator = tarn.Allocator(self.device, "")

    def test_wrong_settings_are_an_error(self):
        for settings in ("foo:1,bar:2", "max_split_size_mb:2", "pinned_num_register_threads:1024"):
            with self.subTest(settings), self.assertRaises(ValueError) as raised:
                tarn.Allocator(self.device, settings)
            self.assertEqual(raised.exception.status, "TARN_ERR_CONFIG")

    def tearDown(self):
        self.allocator.close()
        self.device.close()

    def test_tagged_memory_sleeps(self):
        with tarn.Allocator(self.device, "policy:compact") as allocator:
            with allocator.tag("cache"):
                ptr = allocator.alloc(30 * MIB)
            allocator.alloc(10 * MIB)
            with allocator.tag("cache"), self.assertRaises(tarn.Error):
                allocator.sleep("cache", discard=True)  # requests are routed to it
            allocator.sleep("cache", discard=True)
            self.assertTrue(allocator.is_asleep("cache"))
            self.assertEqual(allocator.memory_reserved(), 10 * MIB)
            self.assertEqual(self.device.memory_info()[0], 1014 * MIB)
            self.assertEqual(allocator.sleep_stats()["bytes"], 30 * MIB)
            with allocator.tag("cache"), self.assertRaises(tarn.Error) as raised:
                allocator.alloc(512)
            self.assertEqual(raised.exception.status, "TARN_ERR_STATE")
            allocator.wake("cache")
            self.assertFalse(allocator.is_asleep("cache"))
            self.assertEqual(allocator.memory_reserved(), 40 * MIB)
            allocator.free(ptr)
            with self.assertRaises(tarn.Error) as raised:
                allocator.sleep("weights")
            self.assertEqual(raised.exception.status, "TARN_ERR_NOT_FOUND")

    def test_a_try_fails_quietly(self):
        self.allocator.set_soft_limit(100 * MIB)
        ptr = self.allocator.try_alloc(100 * MIB, within_budget=True)
        self.assertIsNotNone(ptr)
        self.assertIsNone(self.allocator.try_alloc(100 * MIB, within_budget=True))
        self.assertIsNone(self.allocator.try_alloc(100 * MIB, never_grow=True))
        self.assertIsNone(self.allocator.try_alloc(2048 * MIB))
        self.assertEqual(self.allocator.stats()["num_ooms"], 0)
        self.assertIn("Tried to allocate 2.00 GiB", self.allocator.explain(2048 * MIB))

    def test_pressure_makes_room(self):
        blocks = [self.allocator.alloc(100 * MIB) for _ in range(10)]
        asked = []

        def evict(size):
            asked.append(size)
            self.allocator.free(blocks.pop())
            return 100 * MIB

        self.allocator.on_pressure(evict)
        self.allocator.alloc(90 * MIB)
        self.assertEqual(asked, [90 * MIB])
        self.allocator.remove_pressure(evict)
        with self.assertRaises(tarn.OutOfMemoryError):
            self.allocator.alloc(90 * MIB)
        self.assertEqual(len(asked), 1)
        with self.assertRaises(KeyError):
            self.allocator.remove_pressure(evict)

    def test_a_pool_has_a_limit_and_counters(self):
        with tarn.Pool(self.allocator, "tenant", limit=100 * MIB, priority=2) as pool:
            ptr = pool.alloc(80 * MIB, stream=3)
            self.assertIsNone(pool.try_alloc(40 * MIB))
            with self.assertRaises(tarn.OutOfMemoryError):
                pool.alloc(40 * MIB)
            stats = pool.stats()
            self.assertEqual((stats["allocated"], stats["limit"]), (80 * MIB, 100 * MIB))
            block = self.allocator.find_block(ptr)
            self.assertIsNone(block["user"])
            self.allocator.set_user_data(ptr, 4096, 7)
            found = self.allocator.find_block(ptr)
            self.assertEqual((found["user"], found["user_tag"]), (4096, 7))
            self.assertEqual((block["size"], block["stream"]), (80 * MIB, 3))
            self.assertNotEqual(block["pool"], (0, 0))
            self.allocator.free(ptr)
            self.assertEqual(pool.trim(0), 0)
            pool.set_limit(None)
            self.assertIsNone(pool.stats()["limit"])
            (reserved,) = self.allocator.reserved_by_pool().values()
            self.assertEqual(
                reserved["large_pool"],
                {"current": 0, "peak": 80 * MIB, "allocated": 80 * MIB, "freed": 80 * MIB},
            )
        self.assertEqual(list(self.allocator.reserved_by_pool()), [block["pool"]])
        pools = [tarn.Pool(self.allocator, str(i)) for i in range(20)]
        self.assertEqual(len(self.allocator.reserved_by_pool()), 21)
        for pool in pools:
            pool.close()
        self.allocator.reset_peak_stats()
        self.allocator.reset_accumulated_stats()
        self.assertEqual(self.allocator.reserved_by_pool(), {})
        with self.assertRaises(tarn.Error):
            tarn.Pool(self.allocator, "x" * 100)

    def test_a_stream_is_released(self):
        for stream in (1, 2):
            self.allocator.free(self.allocator.alloc(30 * MIB, stream))
        self.allocator.release_stream(1)
        self.assertEqual(self.allocator.memory_reserved(), 30 * MIB)
        self.assertEqual(self.allocator.good_size(1000), 1024)
        self.allocator.set_limit(50 * MIB)
        self.assertEqual(self.allocator.limit, 50 * MIB)
        self.allocator.set_limit(None)
        self.assertIsNone(self.allocator.limit)

    def test_the_cache_is_trimmed(self):
        for ptr in [self.allocator.alloc(size * MIB) for size in (30, 100, 50)]:
            self.allocator.free(ptr)
        self.assertEqual(self.allocator.trim(100 * MIB), 80 * MIB)
        self.assertEqual(self.allocator.trim(0), 0)

    def test_pages_are_counted(self):
        self.assertEqual(self.allocator.page_stats()["page_size"], 0)
        with tarn.Allocator(self.device, "policy:compact") as compact:
            compact.alloc(30 * MIB)
            pages = compact.page_stats()
        self.assertEqual((pages["created"], pages["moved"], pages["requests"]), (15, 0, 1))
        self.assertEqual(sum(pages["by_time"]), 1)

    def test_memory_goes_round(self):
        ptr = self.allocator.alloc(5 * MIB)
        self.assertEqual(self.allocator.base_allocation(ptr), (ptr, 20 * MIB))
        self.allocator.record_stream(ptr, 7)
        self.allocator.free(ptr)
        self.assertEqual(self.allocator.alloc(0), 0)
        self.allocator.free(0)
        stats = self.allocator.stats()
        self.assertEqual(stats["allocation"]["all"]["allocated"], 1)
        self.allocator.empty_cache()
        self.assertEqual(self.allocator.stats()["reserved_bytes"]["all"]["current"], 0)
        self.allocator.reset_peak_stats()
        self.allocator.reset_accumulated_stats()
        self.assertEqual(self.allocator.stats()["allocation"]["all"]["peak"], 0)
        self.assertEqual(self.allocator.stats()["allocation"]["all"]["allocated"], 0)

    def test_a_block_comes_back_at_its_address(self):
        ptr = self.allocator.alloc(20 * MIB)
        self.allocator.free(ptr)
        self.assertEqual(self.allocator.alloc_at(ptr + 4 * MIB, 2 * MIB), ptr + 4 * MIB)
        with self.assertRaises(tarn.Error):
            self.allocator.alloc_at(ptr + 4 * MIB, 2 * MIB)
        self.allocator.free(ptr + 4 * MIB)

    def test_running_out_has_pytorchs_message(self):
        with self.assertRaises(tarn.OutOfMemoryError) as raised:
            self.allocator.alloc(2048 * MIB)
        self.assertTrue(str(raised.exception).startswith("CUDA out of memory. Tried to allocate"))
        self.assertEqual(raised.exception.status, "TARN_ERR_OUT_OF_MEMORY")

    def test_a_limit(self):
        self.assertIsNone(self.allocator.limit)
        self.allocator.set_memory_fraction(0.5)
        self.assertEqual(self.allocator.limit, 512 * MIB)
        self.assertEqual(self.allocator.memory_fraction, 0.5)
        for wrong in (2.0, -0.1):
            with self.assertRaises(ValueError) as raised:
                self.allocator.set_memory_fraction(wrong)
            self.assertEqual(
                str(raised.exception), f"Invalid fraction value: {wrong}. Allowed range: 0~1"
            )
        with self.assertRaises(TypeError) as raised:
            self.allocator.set_memory_fraction(1)
        self.assertEqual(
            str(raised.exception), "Invalid type for fraction argument, must be `float`"
        )
        self.allocator.set_memory_fraction(1.0)
        self.assertEqual(self.allocator.memory_fraction, 1.0)

    def test_the_backend_has_pytorchs_name(self):
        self.assertEqual(self.allocator.backend, "native")
        with tarn.Allocator(self.device, "backend:cudaMallocAsync") as other:
            self.assertEqual(other.backend, "cudaMallocAsync")

    def test_bytes_have_their_functions(self):
        self.allocator.free(self.allocator.alloc(30 * MIB))
        self.allocator.alloc(3 * MIB)
        self.allocator.empty_cache()
        self.assertEqual(self.allocator.memory_allocated(), 3 * MIB)
        self.assertEqual(self.allocator.max_memory_allocated(), 30 * MIB)
        self.assertEqual(self.allocator.memory_reserved(), 30 * MIB)
        self.assertEqual(self.allocator.max_memory_reserved(), 30 * MIB)

    def test_deprecated_names_warn(self):
        for name, text in {
            "memory_cached": "`torch.cuda.memory_cached` has been renamed to "
            "`torch.cuda.memory_reserved`",
            "max_memory_cached": "`torch.cuda.max_memory_cached` has been renamed to "
            "`torch.cuda.max_memory_reserved`",
            "reset_max_memory_allocated": "torch.cuda.reset_max_memory_allocated now calls "
            "torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
            "reset_max_memory_cached": "torch.cuda.reset_max_memory_cached now calls "
            "torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        }.items():
            with self.subTest(name=name), self.assertWarns(FutureWarning) as warned:
                getattr(self.allocator, name)()
            self.assertEqual(str(warned.warning), text)
            self.assertEqual(warned.filename, __file__)

    def test_a_snapshot_is_pytorchs(self):
        self.allocator.alloc(3 * MIB, 5)
        taken = self.allocator.snapshot()
        self.assertEqual(
            [(s["stream"], s["total_size"], s["allocated_size"]) for s in taken["segments"]],
            [(5, 20 * MIB, 3 * MIB)],
        )
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dump.pickle")
            self.allocator.dump_snapshot(path)
            with open(path, "rb") as file:
                self.assertEqual(pickle.load(file)["segments"], taken["segments"])

    def test_usage_is_a_picture(self):
        self.allocator.alloc(3 * MIB, 5)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "usage.svg")
            for save, has_segments in (
                (self.allocator.save_segment_usage, True),
                (self.allocator.save_memory_usage, False),
            ):
                save(path)
                with open(path, encoding="utf-8") as file:
                    picture = file.read()
                self.assertIn("<svg", picture)
                self.assertIn("stream_5", picture)
                self.assertEqual("seg_" in picture, has_segments)

    def test_files_are_not_written_through_links(self):
        with tempfile.TemporaryDirectory() as folder:
            victim = os.path.join(folder, "victim")
            for save in (self.allocator.save_segment_usage, self.allocator.dump_snapshot):
                path = os.path.join(folder, "link")
                with open(victim, "w", encoding="utf-8") as file:
                    file.write("precious")
                os.symlink(victim, path)
                save(path)
                self.assertFalse(os.path.islink(path))
                with open(victim, encoding="utf-8") as file:
                    self.assertEqual(file.read(), "precious")
                os.unlink(path)
                with self.assertRaises(tarn.Error):
                    save(folder)
            self.assertEqual(os.listdir(folder), ["victim"])

    def test_a_pointer_that_is_none_of_ours(self):
        with self.assertRaises(tarn.Error) as raised:
            self.allocator.free(12345)
        self.assertEqual(raised.exception.status, "TARN_ERR_INVALID_POINTER")

    def test_a_wrong_setting_is_named(self):
        with self.assertRaises(tarn.Error) as raised:
            tarn.Allocator(self.device, "expandable_segmens:True")
        self.assertIn("expandable_segmens", str(raised.exception))

    def test_counters_have_pytorchs_keys(self):
        expected = json.loads(recorded("cudagraph.nested_stats.json"))
        self.assertEqual(shape(self.allocator.stats()), shape(expected))


class PinnedMemory(unittest.TestCase):
    def test_memory_goes_round_and_is_counted(self):
        with tarn.Device("sim:1GiB") as device, tarn.Pinned(device, "") as pinned:
            self.assertIsNone(pinned.alloc(0))
            pinned.free(None)
            memory = pinned.alloc(3000)
            self.assertNotEqual(memory, 0)
            stats = pinned.stats()
            self.assertEqual(stats["active_bytes"]["current"], 4096)
            self.assertEqual(stats["host_alloc_time"]["count"], 1)
            self.assertEqual(list(stats["host_free_time"]), ["total", "max", "min", "count", "avg"])
            pinned.free(memory)
            flat = pinned.flat_stats()
            self.assertEqual(flat["active_bytes.current"], 0)
            self.assertEqual(flat["allocated_bytes.current"], 4096)
            self.assertEqual(list(flat), sorted(flat))
            pinned.empty_cache()
            pinned.reset_peak_stats()
            pinned.reset_accumulated_stats()
            self.assertEqual(pinned.flat_stats()["allocated_bytes.peak"], 0)
            with self.assertRaises(tarn.Error) as raised:
                pinned.free(memory)
            self.assertEqual(raised.exception.status, "TARN_ERR_INVALID_POINTER")


def shape(value):
    return {k: shape(v) for k, v in value.items()} if isinstance(value, dict) else None


def stats_from(nested):
    """The structure that stats_dict would turn into this dictionary."""
    stats = _ffi.Stats()

    def fill(stat, counter):
        for name, number in counter.items():
            setattr(stat, name, number)

    for name, value in nested.items():
        if name in _ffi.STAT_KINDS:
            for pool, counter in value.items():
                kind = stats.by_pool[_ffi.STAT_KINDS.index(name)]
                fill(kind[_ffi.STAT_POOLS.index(pool)], counter)
        elif isinstance(value, dict):
            fill(getattr(stats, name), value)
        else:
            setattr(stats, name, value)
    return stats


class Reports(unittest.TestCase):
    def test_the_summary_is_pytorchs(self):
        nested = json.loads(recorded("cudagraph.nested_stats.json"))
        stats = stats_from(nested)
        self.assertEqual(stats_dict(stats), nested)
        for name in ("tiny", "oom", "multistream"):
            nested = json.loads(recorded(f"{name}.nested_stats.json"))
            flat = json.loads(recorded(f"{name}.memory_stats.json"))
            self.assertEqual(list(flat_stats(nested).items()), list(flat.items()))
        self.assertEqual(summary_text(stats, 0), recorded("cudagraph.summary.txt"))
        self.assertEqual(
            summary_text(stats, 0, abbreviated=True), recorded("cudagraph.summary_abbreviated.txt")
        )

    def test_version(self):
        self.assertRegex(tarn.version(), r"^\d+\.\d+\.\d+$")
