# SPDX-License-Identifier: MIT
"""The C interface in ctypes: structures, prototypes, and which library they come from.

Names and fields are those of include/tarn and plug/pytorch; a test compares every prototype
and every offset with the headers. Opaque objects are void pointers.
"""

import ctypes
import os
import sys
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)

from tarn.errors import Error, InvalidArgumentError, OutOfMemoryError

# enum tarn_status, by number.
STATUS_OK = 0
STATUS_OUT_OF_MEMORY = 1
STATUS_INVALID_ARGUMENT = 3
STATUS_STATE = 6
STATUS_CONFIG = 7
STATUS_NOT_SUPPORTED = 10

_ERRORS = {
    STATUS_OUT_OF_MEMORY: OutOfMemoryError,
    STATUS_INVALID_ARGUMENT: InvalidArgumentError,
    STATUS_CONFIG: InvalidArgumentError,
}

# enum tarn_context_level, by number, as torch names the levels.
CONTEXT_LEVELS = {None: 0, "state": 1, "alloc": 2, "all": 3}

# enum tarn_action: names in files, in the order of the C enumeration.
ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
    "annotate",
)

BACKEND_ASYNC = 1
SNAPSHOT_PICKLE = 0

# enum tarn_flame_view, by number.
FLAME_SEGMENTS = 0
FLAME_MEMORY = 1

ERROR_TEXT_MAX = 1008
CONFIG_TEXT_MAX = 1024
WATCH_FOLDER_MAX = 160
OOM_PATH_BYTES = 4001
ROUNDUP_INTERVALS = 16
ALLOC_TRY, ALLOC_WITHIN_BUDGET, ALLOC_NEVER_GROW = 1, 2, 4  # enum tarn_alloc_flags
STATS_ROOM = 8
SIZE_UNLIMITED = 2**64 - 1
TRACK_CATEGORIES_MAX = 32
TRACK_BACKWARD = 1
TRACK_AUTO = 0xFFFF
TRACK_DEVICES_MAX = 64

# enum tarn_track_kind, in the order of the C enumeration.
TRACK_KINDS = (
    "CREATE", "CLASSIFY", "RESIZE", "DELETE", "ENTER", "INPUT", "OUTPUT", "READY", "LEAVE",
    "ENTER_BACKWARD", "LEAVE_BACKWARD", "END_BACKWARD", "BEGIN_STEP", "END_STEP", "OP_DONE",
    "ACTIVE", "START", "RESET_MODULES", "FORGET_MODULE", "BEGIN_ITERATION",
)  # fmt: skip

# enum tarn_stat_kind and enum tarn_stat_pool: PyTorch's keys, in the order of the C enumerations.
STAT_KINDS = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
STAT_POOLS = ("all", "small_pool", "large_pool")


class TarnError(Structure):
    _c_name_ = "tarn_error"
    _fields_ = [
        ("status", c_int),
        ("offset", c_int64),
        ("text", c_char * ERROR_TEXT_MAX),
    ]


class DeviceInfo(Structure):
    _c_name_ = "tarn_device_info"
    _fields_ = [
        ("struct_size", c_uint32),
        ("ordinal", c_int),
        ("backend", c_char_p),
        ("total_memory", c_uint64),
        ("granularity", c_uint64),
    ]


class PoolId(Structure):
    _c_name_ = "tarn_pool_id"
    _fields_ = [("first", c_uint64), ("second", c_uint64)]


class Stat(Structure):
    _c_name_ = "tarn_stat"
    _fields_ = [
        ("current", c_int64),
        ("peak", c_int64),
        ("allocated", c_int64),
        ("freed", c_int64),
    ]


class Stats(Structure):
    _c_name_ = "tarn_stats"
    _fields_ = [
        ("struct_size", c_uint32),
        ("oversize_allocations", Stat),
        ("oversize_segments", Stat),
        ("num_alloc_retries", c_int64),
        ("num_ooms", c_int64),
        ("num_sync_all_streams", c_int64),
        ("num_device_alloc", c_int64),
        ("num_device_free", c_int64),
        ("max_split_size", c_int64),
        ("num_oom_rejections", c_int64),
        ("room", c_int64 * STATS_ROOM),
        ("by_pool", (Stat * len(STAT_POOLS)) * len(STAT_KINDS)),
    ]


class PoolReserved(Structure):
    _c_name_ = "tarn_pool_reserved"
    _fields_ = [
        ("id", PoolId),
        ("is_gone", c_bool),
        ("by_pool", Stat * len(STAT_POOLS)),
    ]


class Config(Structure):
    _c_name_ = "tarn_config"
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_split_size", c_uint64),
        ("max_non_split_rounding", c_uint64),
        ("large_segment_size", c_uint64),
        ("garbage_collection_threshold", c_double),
        ("roundup_power2_divisions", c_uint32 * ROUNDUP_INTERVALS),
        ("expandable_segments", c_bool),
        ("release_lock_on_device_alloc", c_bool),
        ("throw_on_device_oom", c_bool),
        ("graph_capture_record_stream_reuse", c_bool),
        ("no_caching", c_bool),
        ("memory_fraction_given", c_bool),
        ("memory_fraction", c_double),
        ("backend", c_int),
        ("pinned_use_host_register", c_bool),
        ("pinned_use_background_threads", c_bool),
        ("pinned_free_catch_all", c_bool),
        ("pinned_num_register_threads", c_uint32),
        ("pinned_reserve_segment_size", c_uint64),
        ("text", c_char * CONFIG_TEXT_MAX),
        ("policy", c_int),
        ("rules", c_int),
        ("max_cached", c_uint64),
        ("watch", c_int),
        ("watch_folder", c_char * WATCH_FOLDER_MAX),
        ("pinned_max_round_threshold", c_uint64),
        ("pinned_max_cached_size", c_uint64),
    ]


class CaptureSource(Structure):
    _c_name_ = "tarn_capture_source"
    _fields_ = [("allocator", c_void_p), ("history", c_void_p)]


class CaptureOptions(Structure):
    _c_name_ = "tarn_capture_options"
    _fields_ = [
        ("struct_size", c_uint32),
        ("without_traces", c_bool),
        ("only_pool", c_bool),
        ("pool", PoolId),
        ("device_count", c_uint32),
        ("pinned", c_void_p),
        ("pinned_history", c_void_p),
        ("observers", c_void_p),
        ("observer_count", c_size_t),
        ("host_observer", c_void_p),
    ]


class Progress(Structure):
    _c_name_ = "tarn_progress"
    _fields_ = [
        ("report", c_void_p),
        ("context", c_void_p),
    ]


class ReadLimits(Structure):
    _c_name_ = "tarn_read_limits"
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_depth", c_uint32),
        ("max_bytes", c_uint64),
        ("max_memory", c_uint64),
        ("max_string", c_uint64),
        ("max_ratio", c_uint64),
        ("max_frames", c_uint32),
        ("strict", c_bool),
        ("progress", Progress),
    ]


class Label(Structure):
    _c_name_ = "tarn_label"
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class SummaryOptions(Structure):
    _c_name_ = "tarn_summary_options"
    _fields_ = [
        ("struct_size", c_uint32),
        ("label_count", c_size_t),
        ("labels", POINTER(Label)),
        ("report", c_void_p),
    ]


class FlameOptions(Structure):
    _c_name_ = "tarn_flame_options"
    _fields_ = [
        ("struct_size", c_uint32),
        ("one_device", c_bool),
        ("device", c_int),
        ("folded", c_bool),
        ("units", c_int),
    ]


class Duration(Structure):
    _c_name_ = "tarn_duration"
    _fields_ = [
        ("total", c_int64),
        ("max", c_int64),
        ("min", c_int64),
        ("count", c_int64),
    ]


class PinnedStats(Structure):
    _c_name_ = "tarn_pinned_stats"
    _fields_ = [
        ("struct_size", c_uint32),
        ("allocations", Stat),
        ("active_requests", Stat),
        ("allocated_bytes", Stat),
        ("active_bytes", Stat),
        ("num_host_alloc", c_int64),
        ("num_host_free", c_int64),
        ("host_alloc_time", Duration),
        ("host_free_time", Duration),
        ("graph_blocks", c_int64),
        ("lost_blocks", c_int64),
    ]


class HistoryUsage(Structure):
    _c_name_ = "tarn_history_usage"
    _fields_ = [
        ("struct_size", c_uint32),
        ("entries", c_uint64),
        ("max_entries", c_uint64),
        ("entries_overwritten", c_uint64),
        ("entries_skipped", c_uint64),
        ("annotations", c_uint64),
        ("annotations_overwritten", c_uint64),
        ("stacks", c_uint64),
        ("stack_bytes", c_uint64),
        ("stacks_dropped", c_uint64),
        ("texts", c_uint64),
        ("text_bytes", c_uint64),
        ("texts_dropped", c_uint64),
    ]


PAGE_TIMES = 24


class PageStats(Structure):
    _c_name_ = "tarn_page_stats"
    _fields_ = [
        ("struct_size", c_uint32),
        ("page_size", c_uint64),
        ("created", c_uint64),
        ("moved", c_uint64),
        ("kept", c_uint64),
        ("retired", c_uint64),
        ("requests", c_uint64),
        ("request_ns", c_uint64),
        ("longest_ns", c_uint64),
        ("by_time", c_uint64 * PAGE_TIMES),
    ]


class SleepOptions(Structure):
    _c_name_ = "tarn_sleep_options"
    _fields_ = [("struct_size", c_uint32), ("discard", c_bool), ("keep_host", c_bool)]


class SleepStats(Structure):
    _c_name_ = "tarn_sleep_stats"
    _fields_ = [
        ("struct_size", c_uint32),
        ("pools", c_uint64),
        ("bytes", c_uint64),
        ("host_bytes", c_uint64),
        ("sleeps", c_uint64),
        ("sleep_ns", c_uint64),
        ("wakes", c_uint64),
        ("wake_ns", c_uint64),
    ]


class TrackerOptions(Structure):
    _c_name_ = "tarn_tracker_options"
    _fields_ = [
        ("struct_size", c_uint32),
        ("calls_kept", c_uint32),
        ("granularity", c_uint64),
        ("all_storages", c_bool),
        ("one_iteration", c_bool),
        ("label_allocations", c_bool),
        ("scope", c_void_p),
        ("scope_context", c_void_p),
    ]


class TrackEvent(Structure):
    _c_name_ = "tarn_track_event"
    _fields_ = [
        ("kind", c_uint16),
        ("flags", c_uint16),
        ("category", c_uint32),
        ("name", c_uint32),
        ("reserved", c_uint32),
        ("id", c_uint64),
        ("bytes", c_uint64),
    ]


class TrackRow(Structure):
    _c_name_ = "tarn_track_row"
    _fields_ = [
        ("device", c_uint32),
        ("reserved", c_uint32),
        ("total", c_int64),
        ("bytes", c_int64 * TRACK_CATEGORIES_MAX),
    ]


class TrackModule(Structure):
    _c_name_ = "tarn_track_module"
    _fields_ = [
        ("struct_size", c_uint32),
        ("name", c_uint32),
        ("id", c_uint64),
        ("parameter_bytes", c_int64),
        ("buffer_bytes", c_int64),
        ("input_bytes", c_int64),
        ("output_bytes", c_int64),
        ("state_count", c_uint32),
    ]


class PoolOptions(Structure):
    _c_name_ = "tarn_pool_options"
    _fields_ = [
        ("struct_size", c_uint32),
        ("priority", c_int32),
        ("name", c_char_p),
        ("limit", c_uint64),
        ("no_split", c_bool),
        ("use_on_oom", c_bool),
        ("source", c_void_p),
        ("pages_stay", c_bool),
    ]


class PoolStats(Structure):
    _c_name_ = "tarn_pool_stats"
    _fields_ = [
        ("struct_size", c_uint32),
        ("priority", c_int32),
        ("limit", c_uint64),
        ("reserved", c_uint64),
        ("reserved_peak", c_uint64),
        ("allocated", c_uint64),
        ("active", c_uint64),
        ("requested", c_uint64),
        ("blocks", c_uint64),
        ("segments", c_uint64),
    ]


class Block(Structure):
    _c_name_ = "tarn_block"
    _fields_ = [
        ("struct_size", c_uint32),
        ("is_large", c_bool),
        ("is_expandable", c_bool),
        ("address", c_uint64),
        ("size", c_uint64),
        ("requested", c_uint64),
        ("stream", c_uint64),
        ("pool", PoolId),
        ("segment", c_uint64),
        ("segment_size", c_uint64),
        ("stack", c_uint64),
        ("user", c_void_p),
        ("user_tag", c_uint64),
    ]


class Pressure(Structure):
    _c_name_ = "tarn_pressure"
    _fields_ = [
        ("struct_size", c_uint32),
        ("is_soft", c_bool),
        ("allocator", c_void_p),
        ("stream", c_uint64),
        ("pool", PoolId),
        ("bytes", c_uint64),
    ]


PRESSURE = CFUNCTYPE(c_uint64, c_void_p, POINTER(Pressure))
WRITE = CFUNCTYPE(c_int, c_void_p, POINTER(c_char), c_size_t)
POOL_FILTER = CFUNCTYPE(c_bool, c_void_p, c_uint64)


class Writer(Structure):
    _c_name_ = "tarn_writer"
    _fields_ = [("write", WRITE), ("context", c_void_p)]


STRUCTURES = (
    TarnError, DeviceInfo, PoolId, Stat, Stats, Config, CaptureSource, CaptureOptions, Progress,
    ReadLimits,
    FlameOptions, Duration, PinnedStats, HistoryUsage, PageStats, SleepOptions, SleepStats,
    TrackerOptions, TrackEvent, TrackRow, TrackModule, Writer, PoolOptions, PoolStats, Block,
    Pressure, Label, SummaryOptions, PoolReserved,
)  # fmt: skip

_ERROR = POINTER(TarnError)
_PTR = POINTER(c_uint64)
_HANDLE = POINTER(c_void_p)

# name: (result, arguments). Of libtarn.so and libtarn-tools.so.
LIBRARY = {
    "tarn_version": (c_char_p, []),
    "tarn_status_name": (c_char_p, [c_int]),
    "tarn_config_init_sized": (c_int, [POINTER(Config), c_size_t]),
    "tarn_config_parse_sized": (c_int, [c_char_p, POINTER(Config), c_size_t, _ERROR]),
    "tarn_config_from_env_sized": (c_int, [POINTER(Config), c_size_t, _ERROR]),
    "tarn_device_open": (c_int, [c_char_p, _HANDLE, _ERROR]),
    "tarn_device_close": (None, [c_void_p]),
    "tarn_device_get_info": (None, [c_void_p, POINTER(DeviceInfo)]),
    "tarn_device_memory_info": (c_int, [c_void_p, _PTR, _PTR]),
    "tarn_device_list_processes": (c_int, [c_void_p, POINTER(Writer), _ERROR]),
    "tarn_allocator_create": (c_int, [c_void_p, POINTER(Config), _HANDLE, _ERROR]),
    "tarn_allocator_destroy": (None, [c_void_p]),
    "tarn_allocator_alloc": (c_int, [c_void_p, c_uint64, c_uint64, _PTR, _ERROR]),
    "tarn_allocator_alloc_at": (c_int, [c_void_p, c_uint64, c_uint64, c_uint64, _ERROR]),
    "tarn_allocator_free": (c_int, [c_void_p, c_uint64, _ERROR]),
    "tarn_allocator_record_stream": (c_int, [c_void_p, c_uint64, c_uint64, _ERROR]),
    "tarn_allocator_empty_cache": (c_int, [c_void_p, _ERROR]),
    "tarn_allocator_base_allocation": (c_int, [c_void_p, c_uint64, _PTR, _PTR, _ERROR]),
    "tarn_allocator_set_enabled": (c_int, [c_void_p, c_bool, _ERROR]),
    "tarn_allocator_is_enabled": (c_bool, [c_void_p]),
    "tarn_allocator_set_memory_fraction": (c_int, [c_void_p, c_double, _ERROR]),
    "tarn_allocator_get_limit": (c_uint64, [c_void_p]),
    "tarn_allocator_get_memory_fraction": (c_double, [c_void_p]),
    "tarn_allocator_get_backend": (c_char_p, [c_void_p]),
    "tarn_allocator_trim": (c_int, [c_void_p, c_uint64, POINTER(c_uint64), _ERROR]),
    "tarn_allocator_get_stats": (None, [c_void_p, POINTER(Stats)]),
    "tarn_allocator_get_pool_reserved": (c_size_t, [c_void_p, POINTER(PoolReserved), c_size_t]),
    "tarn_allocator_get_page_stats": (None, [c_void_p, POINTER(PageStats)]),
    "tarn_allocator_begin_pool": (c_int, [c_void_p, PoolId, POOL_FILTER, c_void_p, _ERROR]),
    "tarn_allocator_end_pool": (c_int, [c_void_p, PoolId, _ERROR]),
    "tarn_allocator_release_pool": (c_int, [c_void_p, PoolId, _ERROR]),
    "tarn_allocator_sleep": (c_int, [c_void_p, PoolId, POINTER(SleepOptions), _ERROR]),
    "tarn_allocator_wake": (c_int, [c_void_p, PoolId, _ERROR]),
    "tarn_allocator_is_asleep": (c_bool, [c_void_p, PoolId]),
    "tarn_allocator_get_sleep_stats": (None, [c_void_p, POINTER(SleepStats)]),
    "tarn_allocator_reset_peak_stats": (None, [c_void_p]),
    "tarn_allocator_reset_accumulated_stats": (None, [c_void_p]),
    "tarn_allocator_get_config_sized": (c_int, [c_void_p, POINTER(Config), c_size_t]),
    "tarn_pool_create": (c_int, [c_void_p, POINTER(PoolOptions), _HANDLE, _ERROR]),
    "tarn_pool_destroy": (None, [c_void_p]),
    "tarn_pool_alloc": (c_int, [c_void_p, c_uint64, c_uint64, _PTR, _ERROR]),
    "tarn_pool_trim": (c_int, [c_void_p, c_uint64, _PTR, _ERROR]),
    "tarn_pool_set_limit": (c_int, [c_void_p, c_uint64, _ERROR]),
    "tarn_pool_get_stats": (c_int, [c_void_p, POINTER(PoolStats)]),
    "tarn_alloc_try": (c_int, [c_void_p, c_uint64, c_uint64, c_uint, _PTR]),
    "tarn_pool_alloc_try": (c_int, [c_void_p, c_uint64, c_uint64, c_uint, _PTR]),
    "tarn_alloc_explain": (c_int, [c_void_p, c_uint64, c_uint64, _ERROR]),
    "tarn_allocator_set_limit": (c_int, [c_void_p, c_uint64, _ERROR]),
    "tarn_allocator_set_soft_limit": (c_int, [c_void_p, c_uint64, _ERROR]),
    "tarn_allocator_add_pressure_callback": (c_int, [c_void_p, PRESSURE, c_void_p]),
    "tarn_allocator_remove_pressure_callback": (c_int, [c_void_p, PRESSURE, c_void_p]),
    "tarn_allocator_find_block": (c_int, [c_void_p, c_uint64, POINTER(Block), _ERROR]),
    "tarn_allocator_set_user_data": (
        c_int, [c_void_p, c_uint64, c_void_p, c_uint64, POINTER(TarnError)]
    ),
    "tarn_allocator_usable_size": (c_uint64, [c_void_p, c_uint64]),
    "tarn_allocator_good_size": (c_uint64, [c_void_p, c_uint64]),
    "tarn_allocator_release_stream": (c_int, [c_void_p, c_uint64, _ERROR]),
    "tarn_cupy_alloc": (c_void_p, [c_void_p, c_size_t, c_int]),
    "tarn_cupy_free": (None, [c_void_p, c_void_p, c_int]),
    "tarn_onnx_use": (None, [c_void_p]),
    "tarn_onnx_alloc": (c_void_p, [c_size_t]),
    "tarn_onnx_free": (None, [c_void_p]),
    "tarn_onnx_empty_cache": (None, []),
    "tarn_allocator_annotate": (c_int, [c_void_p, c_uint64, c_char_p, _ERROR]),
    "tarn_set_user_metadata": (c_int, [c_char_p]),
    "tarn_get_user_metadata": (c_char_p, []),
    "tarn_history_get_usage": (None, [c_void_p, POINTER(HistoryUsage)]),
    "tarn_snapshot_capture": (
        c_int,
        [POINTER(CaptureSource), c_size_t, POINTER(CaptureOptions), _HANDLE, _ERROR],
    ),
    "tarn_oom_dump_expand": (c_int, [c_char_p, POINTER(c_char), _ERROR]),
    "tarn_snapshot_load_memory": (
        c_int,
        [c_void_p, c_size_t, POINTER(ReadLimits), _HANDLE, _ERROR],
    ),
    "tarn_report_flame": (
        c_int,
        [c_void_p, c_int, POINTER(FlameOptions), POINTER(Writer), _ERROR],
    ),
    "tarn_fleet_create": (c_int, [_HANDLE, _ERROR]),
    "tarn_fleet_destroy": (None, [c_void_p]),
    "tarn_fleet_add": (
        c_int,
        [c_void_p, c_void_p, c_char_p, POINTER(SummaryOptions), _ERROR],
    ),
    "tarn_fleet_write": (c_int, [c_void_p, POINTER(Writer), _ERROR]),
    "tarn_pinned_create": (c_int, [c_void_p, POINTER(Config), _HANDLE, _ERROR]),
    "tarn_pinned_destroy": (None, [c_void_p]),
    "tarn_pinned_alloc": (c_int, [c_void_p, c_uint64, _HANDLE, _ERROR]),
    "tarn_pinned_free": (c_int, [c_void_p, c_void_p, _ERROR]),
    "tarn_pinned_empty_cache": (c_int, [c_void_p, _ERROR]),
    "tarn_pinned_get_stats": (None, [c_void_p, POINTER(PinnedStats)]),
    "tarn_pinned_reset_peak_stats": (None, [c_void_p]),
    "tarn_pinned_reset_accumulated_stats": (None, [c_void_p]),
    "tarn_file_create": (c_int, [c_char_p, _HANDLE, _ERROR]),
    "tarn_file_writer": (Writer, [c_void_p]),
    "tarn_file_finish": (c_int, [c_void_p, c_int, _ERROR]),
    "tarn_snapshot_write": (c_int, [c_void_p, c_int, POINTER(Writer), _ERROR]),
    "tarn_snapshot_save": (c_int, [c_void_p, c_char_p, _ERROR]),
    "tarn_snapshot_destroy": (None, [c_void_p]),
    "tarn_tracker_create": (c_int, [POINTER(TrackerOptions), _HANDLE, _ERROR]),
    "tarn_tracker_destroy": (None, [c_void_p]),
    "tarn_tracker_add_name": (c_int, [c_void_p, c_int, c_char_p, POINTER(c_uint32), _ERROR]),
    "tarn_tracker_apply": (
        c_int, [c_void_p, POINTER(TrackEvent), c_size_t, POINTER(c_size_t), _ERROR]
    ),
    "tarn_tracker_get_rows": (
        None, [c_void_p, c_int, POINTER(TrackRow), c_size_t, POINTER(c_size_t)]
    ),
    "tarn_tracker_count_modules": (c_size_t, [c_void_p]),
    "tarn_tracker_get_module": (c_int, [c_void_p, c_size_t, POINTER(TrackModule)]),
    "tarn_tracker_get_state": (
        c_int, [c_void_p, c_size_t, c_size_t, POINTER(c_uint32), POINTER(c_size_t)]
    ),
    "tarn_tracker_get_call": (
        c_int,
        [c_void_p, c_size_t, c_size_t, c_size_t, POINTER(TrackRow), c_size_t, POINTER(c_size_t)],
    ),
    "tarn_tracker_write_rows": (
        c_int, [c_void_p, c_int, c_int, c_int, POINTER(Writer), _ERROR]
    ),
    "tarn_tracker_write_modules": (
        c_int, [c_void_p, c_uint32, c_int, c_int, POINTER(Writer), _ERROR]
    ),
    "tarn_tracker_write_tree": (
        c_int, [c_void_p, c_int, c_uint32, c_int, c_uint32, POINTER(Writer), _ERROR]
    ),
    "tarn_tracker_write_iterations": (c_int, [c_void_p, c_int, POINTER(Writer), _ERROR]),
    "tarn_tracker_write_json": (c_int, [c_void_p, c_bool, POINTER(Writer), _ERROR]),
    "tarn_devices_shared": (c_void_p, []),
    "tarn_devices_use": (c_int, [c_void_p, c_int, c_void_p, _ERROR]),
    "tarn_devices_open": (c_int, [c_void_p, c_int, _HANDLE, _ERROR]),
    "tarn_devices_find": (c_void_p, [c_void_p, c_int]),
    "tarn_devices_find_history": (c_void_p, [c_void_p, c_int]),
    "tarn_devices_configure": (c_int, [c_void_p, c_char_p, _ERROR]),
    "tarn_devices_get_config_sized": (c_int, [c_void_p, POINTER(Config), c_size_t, _ERROR]),
    "tarn_devices_last_error": (c_bool, [c_void_p, _ERROR]),
    "tarn_report_summary": (c_int, [POINTER(Stats), c_int, c_bool, POINTER(Writer)]),
}

# Of the library with torch's class. Functions of libtarn_torch.so are passed on by address.
CLASS = {"tarn_torch_install": (c_int, [c_char_p, _ERROR])}


# What lies in the root of the sources, and in no folder that packages are installed into.
_OF_SOURCES = ("CMakeLists.txt", "python/pyproject.toml", "include/tarn/base.h", "src/libtarn.map")


def _build_folder(package):
    """The folder that `make build` fills, when the package is that of the sources; else None: a
    folder of that name beside an installed package may be anybody's."""
    root = os.path.dirname(os.path.dirname(package))
    build = os.path.join(root, "build")
    if package != os.path.join(root, "python", "tarn"):
        return None
    try:
        trusted = {0, os.geteuid(), os.stat(package).st_uid}
        owners = {os.stat(os.path.join(root, file)).st_uid for file in _OF_SOURCES}
        owners |= {os.stat(root).st_uid, os.stat(build).st_uid}
    except OSError:
        return None
    return build if owners <= trusted else None


def _folders():
    package = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("TARN_LIBRARY_DIR")
    if named:
        return [named]
    build = _build_folder(package)
    return [os.path.join(package, "lib")] + ([build] if build else [])


def find_library(name):
    """Path of a library of ours, or its bare name, for the system to find."""
    for folder in _folders():
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.exists(path):
            return path
    return name


def _load(name, prototypes):
    path = find_library(name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"{name} cannot be loaded ({error}): build it with `make build`, or name its folder in "
            "TARN_LIBRARY_DIR"
        ) from None
    return _bind(library, path, prototypes)


def _bind(library, path, prototypes):
    for function, (result, arguments) in prototypes.items():
        try:
            bound = getattr(library, function)
        except AttributeError:
            raise ImportError(f"{path} has no {function}: it is of another version") from None
        bound.restype = result
        bound.argtypes = arguments
    return library


class _Lazy:
    """A library that is loaded when it is first used, so that importing the package never fails."""

    def __init__(self, name, prototypes):
        self._name = name
        self._prototypes = prototypes

    def __getattr__(self, function):
        library = _load(self._name, self._prototypes)
        self.__dict__.update({name: getattr(library, name) for name in self._prototypes})
        self.__dict__["cdll"] = library
        return self.__dict__[function]


lib = _Lazy("libtarn-tools.so.0", LIBRARY)  # which loads libtarn.so.0, beside it
plug = _Lazy("libtarn_torch.so", {"tarn_torch_pool_devices": (c_void_p, [])})


def load_plug(path, prototypes):
    """Loads a library that needs libtarn; OSError where something of torch is missing in it."""
    lib.tarn_version()  # loads libtarn, which the library needs
    return _bind(ctypes.CDLL(path), path, prototypes)


def version():
    """Version of the library, e.g. "0.1.0"."""
    return lib.tarn_version().decode()


def written(function, *arguments, error=True):
    """Bytes that a function writes to its struct tarn_writer, the last parameter but the error."""
    pieces = []

    def write(_context, data, size):
        pieces.append(ctypes.string_at(data, size))
        return STATUS_OK

    writer = Writer(WRITE(write), None)
    if error:
        call(function, *arguments, ctypes.byref(writer))
    else:
        check(function(*arguments, ctypes.byref(writer)))
    return b"".join(pieces)


def text_of(error):
    return error.text.decode("utf-8", "replace")


def check(status, error=None):
    """Raises what a status stands for; `error` is the TarnError of the call, if it has one."""
    if status == STATUS_OK:
        return
    name = lib.tarn_status_name(status).decode()
    text = text_of(error) if error is not None and error.text else name
    raise _ERRORS.get(status, Error)(name, text)


def call(function, *arguments):
    """Calls a function whose last parameter is a struct tarn_error, and checks what it returns."""
    error = TarnError()
    check(function(*arguments, ctypes.byref(error)), error)


if sys.maxsize < 2**32:
    raise ImportError("tarn needs a 64-bit Python")
