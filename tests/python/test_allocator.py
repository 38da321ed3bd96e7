# SPDX-License-Identifier: MIT
"""The classes over a device and an allocator, on simulated devices."""

import json
import os
import unittest

import tarn
from tarn import _ffi
from tarn.allocator import stats_dict, summary_text

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

    def test_a_wrong_device_is_an_error(self):
        with self.assertRaises(tarn.Error) as raised:
            tarn.Device("simulated")
        self.assertEqual(raised.exception.status, "TARN_ERR_INVALID_ARGUMENT")
        self.assertIn("simulated", str(raised.exception))


class Allocators(unittest.TestCase):
    def setUp(self):
        self.device = tarn.Device("sim:1GiB")
        self.allocator = tarn.Allocator(self.device, "")

    def tearDown(self):
        self.allocator.close()
        self.device.close()

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

    def test_running_out_has_pytorchs_message(self):
        with self.assertRaises(tarn.OutOfMemoryError) as raised:
            self.allocator.alloc(2048 * MIB)
        self.assertTrue(str(raised.exception).startswith("CUDA out of memory. Tried to allocate"))
        self.assertEqual(raised.exception.status, "TARN_ERR_OUT_OF_MEMORY")

    def test_a_limit(self):
        self.assertIsNone(self.allocator.limit)
        self.allocator.set_memory_fraction(0.5)
        self.assertEqual(self.allocator.limit, 512 * MIB)
        with self.assertRaises(tarn.Error):
            self.allocator.set_memory_fraction(2.0)

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
        self.assertEqual(summary_text(stats, 0), recorded("cudagraph.summary.txt"))
        self.assertEqual(
            summary_text(stats, 0, abbreviated=True), recorded("cudagraph.summary_abbreviated.txt")
        )

    def test_version(self):
        self.assertRegex(tarn.version(), r"^\d+\.\d+\.\d+$")
