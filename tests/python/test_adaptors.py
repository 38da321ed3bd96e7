# SPDX-License-Identifier: MIT
"""The adaptors for other libraries, on simulated devices. Those libraries are stood in for by what
the adaptors use of them; tests/gpu/adaptors.sh runs the real ones."""

import ctypes
import importlib.util
import os
import sys
import types
import unittest

import tarn

ADAPTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "adaptors")
MIB = 1 << 20


def load(name, **stand_ins):
    """The adaptor, with these modules in place of the real ones."""
    before = {key: sys.modules.get(key) for key in stand_ins}
    sys.modules.update(stand_ins)
    try:
        spec = importlib.util.spec_from_file_location(name, os.path.join(ADAPTORS, f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for key, value in before.items():
            if value is None:
                del sys.modules[key]
            else:
                sys.modules[key] = value
    return module


class OnDevice(unittest.TestCase):
    def setUp(self):
        self.device = tarn.Device("sim:1GiB")
        self.allocator = tarn.Allocator(self.device, "")

    def tearDown(self):
        self.allocator.close()
        self.device.close()

    def allocated(self):
        return self.allocator.memory_allocated()


class CudaOutOfMemory(MemoryError):
    def __init__(self, size, total, limit):
        super().__init__(f"{size} of {limit}, {total} in use")


class CFunctionAllocator:
    """As CuPy's: calls two addresses with (param, size, device) and (param, pointer, device)."""

    def __init__(self, param, malloc, free, owner):
        self.param, self.owner = param, owner
        arguments = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self._malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, *arguments)(malloc)
        arguments = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
        self._free = ctypes.CFUNCTYPE(None, *arguments)(free)

    def malloc(self, size):
        return self._malloc(self.param, size, 0)

    def free(self, ptr):
        self._free(self.param, ptr, 0)


class PythonFunctionAllocator:
    def __init__(self, malloc, free):
        self._malloc, self._free = malloc, free

    def malloc(self, size):
        return self._malloc(size, 0)

    def free(self, ptr):
        self._free(ptr, 0)


def stand_in_cupy():
    cupy = types.ModuleType("cupy")
    cupy.stream = types.SimpleNamespace(ptr=0)
    cupy.chosen = None
    memory = types.SimpleNamespace(
        CFunctionAllocator=CFunctionAllocator,
        PythonFunctionAllocator=PythonFunctionAllocator,
        OutOfMemoryError=CudaOutOfMemory,
    )

    def set_allocator(chosen):
        cupy.chosen = chosen

    cupy.cuda = types.SimpleNamespace(
        memory=memory,
        get_current_stream=lambda: cupy.stream,
        get_allocator=lambda: cupy.chosen,
        set_allocator=set_allocator,
    )
    return cupy


class CuPy(OnDevice):
    def setUp(self):
        super().setUp()
        self.cupy = stand_in_cupy()
        self.adaptor = load("cupy_tarn", cupy=self.cupy)

    def test_c_functions_are_called_by_address(self):
        chosen = self.adaptor.c_allocator(self.allocator)
        ptr = chosen.malloc(MIB)
        self.assertEqual(self.allocated(), MIB)
        self.assertIsNone(chosen.malloc(2048 * MIB))
        chosen.free(ptr)
        self.assertEqual(self.allocated(), 0)

    def test_streams_are_known(self):
        chosen = self.adaptor.stream_allocator(self.allocator)
        self.cupy.stream.ptr = 16
        ptr = chosen.malloc(MIB)
        self.assertEqual(self.allocator.find_block(ptr)["stream"], 16)
        self.cupy.stream.ptr = 32
        chosen.free(ptr)
        self.assertEqual(self.allocated(), 0)
        with self.assertRaises(CudaOutOfMemory):
            chosen.malloc(2048 * MIB)

    def test_the_allocator_before_comes_back(self):
        self.cupy.chosen = "before"
        with self.adaptor.using(self.allocator) as chosen:
            self.assertEqual(self.cupy.chosen, chosen.malloc)
        self.assertEqual(self.cupy.chosen, "before")


class Numba(OnDevice):
    def setUp(self):
        super().setUp()
        cuda = types.ModuleType("numba.cuda")

        class HostOnlyCUDAMemoryManager:
            context = "context"

            def reset(self):
                self.was_reset = True

        cuda.HostOnlyCUDAMemoryManager = HostOnlyCUDAMemoryManager
        cuda.MemoryPointer = lambda context, pointer, size, finalizer: types.SimpleNamespace(
            context=context, pointer=pointer, size=size, finalizer=finalizer
        )
        cuda.MemoryInfo = lambda free, total: (free, total)
        cuda.set_memory_manager = lambda chosen: setattr(cuda, "chosen", chosen)
        numba = types.ModuleType("numba")
        numba.cuda = cuda
        self.cuda = cuda
        self.adaptor = load("numba_tarn", numba=numba)

    def test_memory_goes_back_with_the_last_reference(self):
        self.adaptor.use(self.allocator)
        manager = self.cuda.chosen()
        self.assertEqual(manager.interface_version, 1)
        memory = manager.memalloc(3 * MIB)
        self.assertEqual(memory.size, 3 * MIB)
        self.assertEqual(self.allocated(), 3 * MIB)
        self.assertEqual(manager.get_memory_info()[1], 1024 * MIB)
        memory.finalizer()
        self.assertEqual(self.allocated(), 0)
        manager.reset()
        self.assertTrue(manager.was_reset)
        self.assertEqual(self.allocator.memory_reserved(), 0)
        with self.assertRaises(MemoryError):
            manager.memalloc(2048 * MIB)
        with self.assertRaises(NotImplementedError):
            manager.get_ipc_handle(memory)


class OnnxRuntime(OnDevice):
    def test_addresses_are_the_options(self):
        adaptor = load("onnxruntime_tarn")
        name, options = adaptor.provider(self.allocator, device_id="0")
        self.assertEqual(name, "CUDAExecutionProvider")
        self.assertEqual(options["device_id"], "0")
        alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(
            int(options["gpu_external_alloc"])
        )
        free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(options["gpu_external_free"]))
        empty = ctypes.CFUNCTYPE(None)(int(options["gpu_external_empty_cache"]))
        ptr = alloc(30 * MIB)
        self.assertEqual(self.allocated(), 30 * MIB)
        free(ptr)
        empty()
        self.assertEqual(self.allocator.memory_reserved(), 0)
        adaptor.end()
        self.assertIsNone(alloc(MIB))
