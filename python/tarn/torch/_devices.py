# SPDX-License-Identifier: MIT
"""The allocators of torch's devices: those of this process (tarn/devices.h)."""

import ctypes

from tarn import _ffi
from tarn._ffi import call, lib, plug


def mempools():
    """Handle of the table that mempool() allocates from, apart from torch's."""
    return plug.tarn_torch_pool_devices()


def find(device, table=None):
    """Handle of the device's allocator; None when it was not used yet."""
    return lib.tarn_devices_find(table or lib.tarn_devices_shared(), device)


def find_history(device):
    """Handle of the device's history; None if it was never recorded."""
    return lib.tarn_devices_find_history(lib.tarn_devices_shared(), device)


def use(device, handle, table=None):
    """Takes another device than the GPU of that number."""
    call(lib.tarn_devices_use, table or lib.tarn_devices_shared(), device, handle)


def configure(settings):
    call(lib.tarn_devices_configure, lib.tarn_devices_shared(), settings.encode())


def config():
    """Settings of the next device. Raises tarn.Error for invalid ones in the environment."""
    read = _ffi.Config()
    call(
        lib.tarn_devices_get_config_sized,
        lib.tarn_devices_shared(),
        ctypes.byref(read),
        ctypes.sizeof(read),
    )
    return read


def last_error():
    """Text of the latest failure that could not be raised, or None."""
    error = _ffi.TarnError()
    table = lib.tarn_devices_shared()
    return _ffi.text_of(error) if lib.tarn_devices_last_error(table, ctypes.byref(error)) else None
